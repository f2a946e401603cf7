"""The operator as a process of its own, so that it can be killed."""

import signal
import subprocess
import sys
from pathlib import Path

RESYNC = "600"  # so long that a test passes only where an event, or a step's own timer, wakes the operator


class OperatorProcess:
    """Starts, kills and restarts ``python -m spark_drain_operator``."""

    def __init__(self, environment: dict[str, str], namespace: str, log: Path, *arguments: str) -> None:
        self._environment = environment
        self._command = [sys.executable, "-m", "spark_drain_operator", "--namespaces", namespace, "--resync-seconds", RESYNC, *arguments]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def twin(self, log: Path, *arguments: str) -> "OperatorProcess":
        """Return a second operator over the same namespaces."""
        other = OperatorProcess(self._environment, "", log)
        other._command = [*self._command, *arguments]
        return other

    def shift_clock(self, seconds: float) -> None:
        """Have it run on a machine whose clock is that much ahead."""
        self._command[1:3] = [str(Path(__file__).with_name("shifted.py")), str(seconds)]

    def shift_one_server(self, seconds: float) -> None:
        """Have it talk to three API servers, of which one has a clock that is much ahead."""
        self._command[1:3] = [str(Path(__file__).with_name("one_is_wrong.py")), str(seconds)]

    def hurry(self) -> "OperatorProcess":
        """Have it wait briefly where it waits by itself; returns it."""
        self._command[1:3] = [str(Path(__file__).with_name("hurried.py"))]
        return self

    def start(self) -> None:
        leftovers = self._log.with_suffix(".tmp")
        leftovers.mkdir(exist_ok=True)
        environment = self._environment | {"TMPDIR": str(leftovers)}  # one that is killed leaves its certificates
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, env=environment, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it as the kernel would: no handler runs."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(timeout=10)

    def stop(self) -> int:
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


def without_proxy(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment without proxies: the API server is on loopback."""
    return {name: value for name, value in environment.items() if not name.lower().endswith("_proxy")}
