"""The client's side of `devcluster.holder`."""

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from devcluster import holder
from devcluster.errors import DevclusterError

_START_SECONDS = 60.0
_ANSWER_SECONDS = 30.0


def lock_owner(file: Path) -> int | None:
    """Return the pid of the process that has a lock on a file, or None.

    A lock cannot be left behind, as a pid file can, and the pid is the one in
    the caller's own pid namespace.
    """
    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        question = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack("hhqqi", fcntl.fcntl(descriptor, fcntl.F_GETLK, question))
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else pid


def holder_pid(folder: Path) -> int | None:
    """Return the pid of the process that holds a cluster's folder, or None."""
    return lock_owner(folder / "holder.lock")


def launch(folder: Path, *, prefix: Sequence[str] = (), tied: bool = False) -> subprocess.Popen[bytes]:
    """Start a holder and wait until it answers.

    Parameters
    ----------
    folder : Path
        The cluster's folder.
    prefix : sequence of str
        A command that runs the holder as its argument, such as ``unshare``.
    tied : bool
        End the holder, and all it holds, when the calling process ends.

    Raises
    ------
    DevclusterError
        If it does not answer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log").mkdir(exist_ok=True)
    command = [*prefix, sys.executable, "-I", holder.__file__, str(folder)]
    command += ["--until-stdin-closes"] if tied else []
    log = folder / "log" / "holder.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if tied else subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError, DevclusterError):
            Client(folder).running()
            if not tied:
                let_outlive(process)
            return process
        time.sleep(0.02)
    raise DevclusterError(f"the holder process did not start, see {log}:\n{log.read_text()}")


def let_outlive(process: subprocess.Popen[bytes]) -> None:
    """Let a process run on after its Popen object is forgotten, and reap it should it end first: no warning, no zombie."""
    threading.Thread(target=process.wait, name=f"reaper-{process.pid}", daemon=True).start()


def end(folder: Path) -> bool:
    """Kill a cluster's holder and wait until it is gone; say whether there was one."""
    pid = holder_pid(folder)
    if pid is None:
        return False
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if holder_pid(folder) == pid:  # still the same one, not a reused number
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            # Readable when the process has ended; pid 1 of a namespace ends last in it.
            if not select.select([handle], [], [], 30)[0]:
                raise DevclusterError(f"process {pid} does not end after SIGKILL")
        finally:
            os.close(handle)
    return True


class Client:
    """Asks the holder of one folder.

    Parameters
    ----------
    folder : Path
        The cluster's folder.
    inner : Path or None
        Where that folder is for the daemons, when they live in another mount namespace.
    """

    def __init__(self, folder: Path, inner: Path | None = None) -> None:
        self.folder = folder
        self.inner = inner or folder

    def start(self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> None:
        """Start a daemon in the cluster's folder unless it runs already."""
        self._ask(
            {
                "do": "start",
                "name": name,
                "argv": [str(argument) for argument in argv],
                "env": dict(env or {}),
                "cwd": str(self.inner),
                "log": str(self.inner / "log" / f"{name}.log"),
            }
        )

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a daemon, if it runs."""
        self._ask({"do": "signal", "name": name, "signal": number})

    def running(self) -> dict[str, int]:
        """Return the pids of the daemons that run, as the holder sees them."""
        return dict(self._ask({"do": "list"})["running"])

    def check(self, *names: str) -> None:
        """Raise DevclusterError with the end of the log if a daemon has ended."""
        ended = self._ask({"do": "list"})["ended"]
        for name in names:
            if name in ended:
                log = self.folder / "log" / f"{name}.log"
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
                raise DevclusterError(f"{name} ended with {ended[name]}, see {log}:\n{tail}")

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        # Through the folder's descriptor: the path of a socket has at most 107 bytes.
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(_ANSWER_SECONDS)
                connection.connect(f"/proc/self/fd/{descriptor}/holder.sock")
                with connection.makefile("rw") as stream:
                    stream.write(json.dumps(request) + "\n")
                    stream.flush()
                    line = stream.readline()
        finally:
            os.close(descriptor)
        if not line:
            raise DevclusterError(f"the holder of {self.folder} did not answer: see log/holder.log")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise DevclusterError(reply["error"])
        return reply
