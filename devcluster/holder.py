"""The one process that everything of a cluster hangs on.

It starts the daemons that clients ask for over a unix socket, reaps them, and
takes them along when it ends, however it ends: each daemon is killed by the
kernel on its parent's death. As pid 1 of a pid namespace it also takes every
container along.

Run as a script by `devcluster.holding`, standard library only.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
from pathlib import Path
from types import FrameType
from typing import Any

_PR_SET_PDEATHSIG = 1
_REQUEST_LIMIT = 1 << 20

_libc = ctypes.CDLL(None, use_errno=True)


class Holder:
    """Daemons by name.

    Parameters
    ----------
    folder : Path
        Where lock, socket and logs are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pids: dict[str, int] = {}
        self.exits: dict[str, int] = {}

    def reap(self, _signal: int = 0, _frame: FrameType | None = None) -> None:
        """Collect ended children, orphans of containers among them."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for name, known in list(self.pids.items()):
                if known == pid:
                    del self.pids[name]
                    self.exits[name] = os.waitstatus_to_exitcode(status)

    def start(self, request: dict[str, Any]) -> None:
        """Start a daemon unless it runs already."""
        name = request["name"]
        if name in self.pids:
            return
        # A child that ends before its pid is noted would never be found by `reap`.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        try:
            parent = os.getpid()
            pid = os.fork()
            if pid == 0:
                self._become(request, parent)
            self.pids[name] = pid
            self.exits.pop(name, None)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})

    def _become(self, request: dict[str, Any], parent: int) -> None:
        try:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            os.setsid()
            os.chdir(request["cwd"])
            log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.execvpe(request["argv"][0], request["argv"], os.environ | request["env"])
        except OSError as error:
            os.write(2, f"{request['argv'][0]}: {error}\n".encode())
        os._exit(127)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a client asks for."""
        match request.get("do"):
            case "start":
                self.start(request)
            case "signal":
                pid = self.pids.get(request["name"])
                if pid is not None:
                    os.kill(pid, request["signal"])
            case "list":
                pass
            case other:
                return {"error": f"no such request: {other!r}"}
        return {"running": self.pids, "ended": self.exits}

    def serve(self, until_stdin_closes: bool) -> None:
        """Answer clients, one short connection each, until killed or left alone."""
        address = self.folder / "holder.sock"
        address.unlink(missing_ok=True)
        os.chdir(self.folder)  # a relative address fits into the 107 bytes of a socket's path
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("holder.sock")
            Path("holder.sock").chmod(0o600)
            server.listen()
            watched: list[Any] = [server, *([sys.stdin] if until_stdin_closes else [])]
            while True:
                ready, _, _ = select.select(watched, [], [])
                if sys.stdin in ready:
                    return
                connection, _ = server.accept()
                with connection, connection.makefile("rw") as stream:
                    try:
                        connection.settimeout(5)
                        reply = self.answer(json.loads(stream.readline(_REQUEST_LIMIT)))
                        stream.write(json.dumps(reply) + "\n")
                        stream.flush()
                    except (OSError, ValueError, KeyError) as error:
                        print(f"holder: {error!r}", file=sys.stderr, flush=True)


def _lock(folder: Path) -> None:
    # A POSIX lock, not a pid file: it goes with the process, and the kernel
    # tells its owner's pid in the reader's own pid namespace.
    descriptor = os.open(folder / "holder.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))
    except OSError:
        sys.exit(f"holder: another one holds {folder}")


def main() -> None:
    """Hold the folder named by the first argument."""
    folder = Path(sys.argv[1])
    _lock(folder)
    holder = Holder(folder)
    signal.signal(signal.SIGCHLD, holder.reap)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    holder.serve("--until-stdin-closes" in sys.argv)


if __name__ == "__main__":
    main()
