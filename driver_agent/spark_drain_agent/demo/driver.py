"""One version of the pipeline in a driver process of its own, and the `spark_drain_store` command beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["DemoError", "Driver", "store_command"]

_JOBS = Path(__file__).parent / "jobs"
_STOP_SECONDS = 20
_LOG_LINES = 30


class DemoError(Exception):
    """The demo cannot go on; the text says why, for people."""


class Driver:
    """A job of the demo under ``python -m spark_drain_agent``, until it is closed.

    Parameters
    ----------
    version
        ``v1`` or ``v2``.
    folder
        The demo's folder.
    store
        Location of the metadata store.
    """

    def __init__(self, version: str, folder: Path, store: str) -> None:
        self.version = version
        self.output = folder / "output" / version
        self.output.mkdir(parents=True)
        self._log = folder / f"{version}.log"
        arguments = [str(folder / "events"), str(folder / "checkpoint"), str(self.output)]
        self.command = ["python", "-m", "spark_drain_agent", "--metadata-store", store, f"{version}.py", "..."]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "spark_drain_agent", "--metadata-store", store, str(_JOBS / f"{version}.py"), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(folder),
                start_new_session=True,  # Ctrl-C is for the demo, which then ends the driver in its own way
            )

    def check(self) -> None:
        """Raise `DemoError` when the driver has ended."""
        code = self._process.poll()
        if code is not None:
            raise DemoError(f"the driver of {self.version} ended with exit code {code}; the end of its log:\n{self._tail()}")

    def wait(self, seconds: float) -> int:
        """Wait for the driver to end by itself and return its exit code."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise DemoError(f"the driver of {self.version} did not end within {seconds:.0f} s:\n{self._tail()}") from error

    def close(self) -> None:
        """End the driver, whatever it does."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        return "\n".join(f"    {line}" for line in lines)


def _environment(folder: Path) -> dict[str, str]:
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    confs = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.host": "127.0.0.1",
    }
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",  # a laptop's own name may not resolve without a network
        "PYSPARK_SUBMIT_ARGS": " ".join(
            ["--master local[2]", *(f"--conf {name}={value}" for name, value in confs.items()), "pyspark-shell"]
        ),
    }


def store_command(store: str, *arguments: str) -> str:
    """Run ``python -m spark_drain_store`` as a person would, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "spark_drain_store", "--metadata-store", store, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode != 0:
        raise DemoError(f"spark_drain_store {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout.strip()
