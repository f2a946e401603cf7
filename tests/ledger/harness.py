"""Numbered events, the drivers that read them, and the ledger that says whether each was counted exactly once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools import spark_java

HERE = Path(__file__).parent
_CRASH_SECONDS = 180
_RECENTLY_SECONDS = 3600
EVENTS = 600
FILES = 8


def write_events(folder: Path, files: Iterable[int] = range(FILES)) -> None:
    """Write the input: of events 0..599, three seconds apart with some disorder within a file, those of such files."""
    folder.mkdir(exist_ok=True)
    per_file = EVENTS // FILES
    for number in files:
        ids = list(range(number * per_file, (number + 1) * per_file))
        ids = ids[1::2] + ids[::2]
        lines = [
            json.dumps({"id": i, "key": "ab" * (i % 4), "at": f"2026-01-01T{i * 3 // 3600:02}:{i * 3 // 60 % 60:02}:{i * 3 % 60:02}Z"})
            for i in ids
        ]
        (folder / f"{number:03}.json").write_text("\n".join(lines))
        os.utime(folder / f"{number:03}.json", (1_700_000_000 + number, 1_700_000_000 + number))


class Ledger:
    """What the sink and the side output of one query hold, compared with the input."""

    def __init__(self, base: Path, events: int = EVENTS, query: str = "ledger") -> None:
        self._events = events
        rows = [row for path in sorted((base / "out").glob("*.json")) for row in json.loads(path.read_text())]
        self.written = [row for row in rows if row["query"] == query]
        aside = sorted((base / "side" / query).glob("*.json"))
        self.aside = [json.loads(line) | {"drain_pane": True} for path in aside for line in path.read_text().splitlines()]
        self.rows = self.written + self.aside
        self.seen = Counter(i for row in self.rows for i in row["ids"])
        assert all(row["count"] == len(row["ids"]) for row in self.rows)
        now = time.time()
        assert all(now - _RECENTLY_SECONDS < row["emitted"] < now for row in self.rows), "a batch did not see the real clock"

    def verdict(self) -> str:
        lost = [i for i in range(self._events) if self.seen[i] == 0]
        doubled = [i for i, times in self.seen.items() if times > 1]
        return f"records={self._events} lost={len(lost)} doubled={len(doubled)}"

    def drain_panes(self) -> int:
        return sum(row["drain_pane"] for row in self.rows)


EXACT = f"records={EVENTS} lost=0 doubled=0"


@dataclass(frozen=True)
class Spark:
    """What a driver runs on.

    Parameters
    ----------
    packages
        Folder with another pyspark than the locked one.
    jars, confs
        For Spark.
    """

    packages: Path | None = None
    jars: tuple[str, ...] = ()
    confs: tuple[tuple[str, str], ...] = ()

    def environment(self) -> dict[str, str]:
        """Return what its process needs."""
        if self.packages is None:
            confs = " ".join(f"--conf {name}={value}" for name, value in self.confs)
            return {**spark_java.environment(), "PYSPARK_SUBMIT_ARGS": f"{confs} {spark_java.submit_arguments(self.jars)}"}
        submit = {"PYSPARK_SUBMIT_ARGS": spark_java.submit_arguments(self.jars)} if self.jars else {}
        return {**spark_java.environment(installed=False), "PYTHONPATH": str(self.packages), **submit}


@dataclass(frozen=True)
class Crash:
    """How a driver is killed.

    Parameters
    ----------
    flush
        The conf spark.sparkdrain.flush.
    when
        See crash_driver.py.
    options
        Of the drain.
    app
        The application, and its arguments after INPUT, BASE and VERSION.
    spark
        What it runs on.
    version
        Of the pipeline; any other than v1 is not drained.
    """

    flush: str
    when: str
    options: tuple[str, ...] = ()
    app: tuple[str, ...] = (str(HERE / "app.py"),)
    spark: Spark = Spark()
    version: str = "v1"

    def __str__(self) -> str:
        return f"{self.flush}-{self.when}"

    @property
    def queries(self) -> list[str]:
        """Names of the driver's queries, one for each point."""
        count = len(self.when.split("+"))
        return [f"ledger-{number}" for number in range(count)] if count > 1 else ["ledger"]

    def happen(self, source: Path, base: Path, started: Callable[[int], None] = lambda _: None) -> Path:
        """Run a driver, drain it, and have it killed; returns the folder with what it leaves behind.

        Parameters
        ----------
        source, base
            The input, and the folder for all else.
        started
            Told the process group.
        """
        base.mkdir(exist_ok=True)
        (base / "shape.json").write_text(json.dumps({"queries": self.queries}))
        scratch = base.with_name("scratch")  # what a killed Spark leaves behind goes away with the test's folder
        scratch.mkdir(exist_ok=True)
        environment = os.environ | {"SPARK_LOCAL_DIRS": str(scratch), "TMPDIR": str(scratch)} | self.spark.environment()
        environment["JDK_JAVA_OPTIONS"] += f" -Djava.io.tmpdir={scratch}"
        environment["LEDGER_APP"] = json.dumps(self.app)
        environment["LEDGER_VERSION"] = self.version
        with (base / "crash.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, str(HERE / "crash_driver.py"), self.when, self.flush, str(source), str(base), *self._options(base)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=environment,
            )
            started(process.pid)
            try:
                code = process.wait(_CRASH_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = 0
        assert code == -9, (base / "crash.log").read_text()[-3000:]
        return base

    def _options(self, base: Path) -> list[str]:
        return [option.format(base=base) for option in self.options]


class Restarter:
    """A process that starts the pipeline again in a warm JVM; see restarter.py.

    Parameters
    ----------
    log
        For what it prints.
    spark
        What it runs on.
    """

    def __init__(self, log: Path, spark: Spark = Spark()) -> None:
        self._log = log
        self._stream = log.open("w")
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "restarter.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stream,
            text=True,
            env=os.environ | {"SPARK_LOCAL_DIRS": str(log.parent)} | spark.environment(),
        )

    def run(self, run: str, version: str, source: Path, base: Path, goal: str, **more: Any) -> dict[str, Any]:
        """Start the pipeline once; see restarter.py."""
        return self._answer({"run": run, "version": version, "input": str(source), "base": str(base), "goal": goal, **more})

    def command(self, *arguments: str) -> dict[str, Any]:
        """Run ``python -m spark_drain_agent``; the outcome is the exit code, the detail what it printed."""
        return self._answer({"arguments": arguments})

    def _answer(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._log.read_text()[-3000:]
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._stream.close()


def copy(base: Path, name: str) -> Path:
    """Copy the state that a crash left behind, so that it can be restarted in two ways."""
    target = base.with_name(f"{base.name}-{name}")
    shutil.copytree(base, target)
    return target
