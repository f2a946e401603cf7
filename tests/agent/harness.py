"""Real drivers under the agent, the `drain` command beside them, numbered input and what came out."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from spark_drain_store.cli import main as store_command

from tests.support import waiting
from tools import spark_java

__all__ = ["PER_FILE", "Drains", "Driver", "Feed", "eventually", "exactly", "ids_in", "logged", "newest", "rows_in"]

APPS = Path(__file__).parent / "apps"
PER_FILE = 50
_SECONDS = 400.0  # a busy machine takes its time to start a JVM

Found = TypeVar("Found")


def eventually(look: Callable[[], Found | None], what: str, seconds: float = _SECONDS, alive: Driver | None = None) -> Found:
    """Return the first truthy answer; fails when time is up, or with its log when the driver ends before."""
    return waiting.eventually(look, what, seconds, alive)


class Feed:
    """Input files of `PER_FILE` events each, three seconds of event time apart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.files = 0

    @property
    def ids(self) -> range:
        """All events so far."""
        return range(self.files * PER_FILE)

    def add(self, count: int = 1) -> range:
        """Write more files and return the ids of their events."""
        first = self.files * PER_FILE
        for _ in range(count):
            lines = []
            for number in range(self.files * PER_FILE, (self.files + 1) * PER_FILE):
                hours, seconds = divmod(number * 3, 3600)
                lines.append(json.dumps({"id": number, "at": f"2026-01-01T{hours:02}:{seconds // 60:02}:{seconds % 60:02}Z"}))
            part = self.folder / f".{self.files:03}"
            part.write_text("\n".join(lines))
            os.utime(part, (1_700_000_000 + self.files, 1_700_000_000 + self.files))  # Spark reads files in the order of their age
            part.rename(self.folder / f"{self.files:03}.json")
            self.files += 1
        return range(first, self.files * PER_FILE)


def rows_in(folder: Path) -> list[dict[str, Any]]:
    """Return the JSON objects, one per line, of all finished files in a folder."""
    return [json.loads(line) for path in sorted(folder.glob("*.json")) for line in path.read_text().splitlines()]


def ids_in(folder: Path) -> Counter[int]:
    """Count each event in the output, whether rows hold one event or a window full."""
    return Counter(event for row in rows_in(folder) for event in row.get("ids", [row.get("id")]))


def logged(checkpoint: Path, log: str) -> list[int]:
    """Return the batch ids of one of a checkpoint's logs."""
    return sorted(int(path.name) for path in (checkpoint / log).glob("*") if path.name.lstrip("-").isdigit())


def newest(checkpoint: Path, log: str) -> int:
    """Return the newest batch id of a log, or -10 where there is none."""
    return max(logged(checkpoint, log), default=-10)


def _is_replaced(lock: Path) -> bool:
    """Make a folder of a lock that others take and make meanwhile: not even root can open it as a file."""
    lock.unlink(missing_ok=True)
    try:
        lock.mkdir(parents=True)
    except FileExistsError:
        return False
    return True


class Drains:
    """The ``spark_drain_store`` command on one store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.location = f"file:{folder}"

    def _command(self, *arguments: str) -> str:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = store_command(["--metadata-store", self.location, "drain", *arguments])
        assert code == 0, err.getvalue()
        return out.getvalue().strip()

    def write(self, mode: str = "Drain", run_id: str | None = None, **options: str) -> str:
        """Request a drain; ``__`` in an option's name stands for its dot. Returns its id."""
        pairs = [part for name, value in options.items() for part in ("--option", f"{name.replace('__', '.')}={value}")]
        return self._command("write", "--mode", mode, *(["--run-id", run_id] if run_id else []), *pairs)

    def show(self, drain_id: str) -> dict[str, Any]:
        """Return one drain as ``drain show`` prints it."""
        return next(drain for drain in json.loads(self._command("show"))["drains"] if drain["uuid"] == drain_id)

    def approve(self, drain_id: str) -> None:
        """Have the plan of a drain carried out."""
        self._command("approve", drain_id)

    def withdraw(self, drain_id: str) -> None:
        """Ask for a drain to be undone."""
        self._command("withdraw", drain_id)

    def clean_up(self, *, everything: bool = False) -> None:
        """Remove finished drains."""
        self._command("cleanup", *(["--all"] if everything else []))

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        """Make the store one that can be neither read nor written."""
        locks = [self.folder / name / ".lock" for name in ("requests", "reports")]
        for lock in locks:
            eventually(lambda lock=lock: _is_replaced(lock), f"{lock} to be a folder")  # type: ignore[misc]
        try:
            yield
        finally:
            for lock in locks:
                lock.rmdir()

    def reaches(self, drain_id: str, *states: str, reason: str | None = None, driver: Driver | None = None) -> dict[str, Any]:
        """Wait until a drain is in one of some states, and return it; fails when it ends in another."""

        def look() -> dict[str, Any] | None:
            drain = self.show(drain_id)
            if drain["state"] in states and reason in (None, drain["reason"]):
                return drain
            assert drain["state"] not in ("Drained", "Withdrawn", "Failed", "Rejected", "Stalled"), drain
            return None

        return eventually(look, f"drain {drain_id} to be {' or '.join(states)} {reason or ''}", alive=driver)


class Driver:
    """A PySpark script in a process of its own.

    Parameters
    ----------
    script
        Name of a file in ``apps``.
    base
        The script's first argument: a folder for input, checkpoints and output.
    arguments
        The script's further arguments.
    store
        Metadata store; None runs the script as plain PySpark.
    confs
        Spark confs.
    prefix
        A command that runs the rest of its arguments as one.
    submitted
        Whether spark-submit starts it, so that the JVM is its parent.
    python
        What spark-submit runs as Python.
    """

    def __init__(
        self,
        script: str,
        base: Path,
        *arguments: str,
        store: Drains | None,
        confs: dict[str, str] | None = None,
        prefix: Sequence[str] = (),
        submitted: bool = False,
        python: str = sys.executable,
    ) -> None:
        self._log = base / f"{Path(script).stem}-{time.monotonic_ns()}.log"
        agent = ["--metadata-store", store.location] if store else []
        settings = {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.session.timeZone": "UTC",
            "spark.sparkdrain.leaseSeconds": "1",
            "spark.sparkdrain.startSeconds": "3",
            **spark_java.CALM_CONFS,
            **spark_java.QUICK_CONFS,
            **(confs or {}),
        }
        conf = [f"--conf {name}={value}" for name, value in settings.items()]
        if submitted:
            main = [str(APPS.parents[2] / "driver_agent/spark_drain_agent/__main__.py")] if store else []
            program = [str(Path(sys.executable).with_name("spark-submit")), *" ".join(conf).split(), *main]
        else:
            program = [sys.executable, *(["-m", "spark_drain_agent"] if store else [])]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*prefix, *program, *agent, str(APPS / script), str(base), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=base,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join([str(APPS.parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]),
                    "PYSPARK_PYTHON": sys.executable,
                    "PYSPARK_DRIVER_PYTHON": python,
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    **spark_java.environment(),
                    "PYSPARK_SUBMIT_ARGS": " ".join([*conf, "pyspark-shell"]),
                },
            )

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process.poll() is None

    @property
    def log(self) -> str:
        """All that the driver has printed."""
        return self._log.read_text(errors="replace")

    def tail(self) -> str:
        """Return the end of the log."""
        return "\n".join(self.log.splitlines()[-60:])

    def wait(self, seconds: float = _SECONDS) -> int:
        """Wait for the driver to end by itself, and return its exit code."""
        return self._process.wait(seconds)

    def kill(self) -> list[int]:
        """Send SIGKILL to the first process, spark-submit's JVM where that started it, and return its children."""
        threads = Path(f"/proc/{self._process.pid}/task").glob("*/children")  # Java forks from any thread
        found = {int(child) for each in threads for child in each.read_text().split()}
        self._process.kill()
        return sorted(found)

    def terminate(self) -> None:
        """Send SIGTERM, as Kubernetes does to a pod that it deletes."""
        self._process.terminate()

    def interrupt(self) -> None:
        """Send SIGINT, as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End the driver if it still runs."""
        if self.running:
            self.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def exactly(ids: Iterable[int]) -> Counter[int]:
    """Return what `ids_in` gives when each of these events is there once."""
    return Counter(ids)
