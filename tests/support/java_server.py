"""Servers of Spark's neighbourhood in JVMs of their own, on loopback, for as long as a test needs them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.server import server_running
from tools import spark_java

__all__ = ["java_server", "run_java"]

_SECONDS = 120.0


def _command(jars: Sequence[str], arguments: Sequence[str]) -> list[str]:
    return ["java", "-Xmx400m", *spark_java.QUICK.split(), "-cp", ":".join(jars), *arguments]


def run_java(jars: Sequence[str], *arguments: str) -> None:
    """Run a main class to its end."""
    done = subprocess.run(
        _command(jars, arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def java_server(folder: Path, jars: Sequence[str], *arguments: str, ready: Callable[[], bool]) -> Iterator[None]:
    """Run a main class in a folder until the end of the block, which begins when it is ready."""
    with server_running(folder, _command(jars, arguments), ready, _SECONDS):
        yield
