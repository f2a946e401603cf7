"""Servers in processes of their own, for as long as a test needs them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.waiting import eventually

__all__ = ["server_running"]


@dataclass(frozen=True)
class _Server:
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def tail(self) -> str:
        return self.log.read_text()[-3000:]


@contextmanager
def server_running(folder: Path, command: Sequence[str], ready: Callable[[], bool], seconds: float) -> Iterator[None]:
    """Run a command in a folder until the end of the block, which begins when it is ready, within so many seconds."""
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        eventually(ready, "the server is ready", seconds, _Server(process, log))
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
