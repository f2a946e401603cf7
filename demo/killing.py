"""The end of the driver in the middle of a drain."""

import json
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_drain_store.channel import config_map_names

from demo.errors import DemoError
from demo.job import APPLICATION
from demo.kubectl import Kubectl

_, REPORTS = config_map_names(APPLICATION)
_DEADLY_STATES = ("Flushing", "Reporting")  # both are beyond the point of no return
_END_SECONDS = 60.0


@dataclass(frozen=True)
class Way:
    """A way to end a driver.

    Parameters
    ----------
    command : tuple of str
        Arguments of a kubectl that waits for what it reads: a flush can be over sooner than kubectl has started.
    text : str
        What it reads.
    """

    command: tuple[str, ...]
    text: str


# -1: every process but the container's first one, which ends with its only child.
PROCESSES = Way(("exec", "--stdin", f"{APPLICATION}-driver", "--", "sh"), "kill -9 -1\n")
POD = Way(
    ("delete", "--filename=-", "--grace-period=0", "--force", "--wait=false"),
    json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{APPLICATION}-driver"}}),
)


class Killer:
    """Waits for a drain to flush, then ends the driver.

    Parameters
    ----------
    kubectl : Kubectl
        Of the namespace of the application.
    way : Way
        How.
    """

    def __init__(self, kubectl: Kubectl, way: Way = PROCESSES) -> None:
        self.state = ""
        self.run = ""
        self._way = way
        self._weapon = kubectl.start(*way.command, stdin=True)
        self._watch = kubectl.start(
            "get", "configmaps", f"--field-selector=metadata.name={REPORTS}", "--watch", "--output=jsonpath={.data}{'\\n'}"
        )
        self._thread = threading.Thread(target=self._strike, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the helpers."""
        for process in (self._watch, self._weapon):
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
        self._thread.join(timeout=10)

    def check(self, report: Mapping[str, Any]) -> None:
        """Make sure that the kill hit the drain: another run of the driver has finished it.

        Raises
        ------
        DemoError
            If nothing was killed in time, or the drain ended in the run that was killed.
        """
        if not self.state:
            raise DemoError("the drain was over before the driver could be killed")
        if report["runs"][-1] == self.run or self.run not in report["runs"]:
            raise DemoError(f"the drain ended in the run {self.run} that was to be killed (runs: {', '.join(report['runs'])})")

    def _strike(self) -> None:
        for line in self._watch.stdout or ():
            for report in reports_in(line):
                if report["state"] in _DEADLY_STATES:
                    assert self._weapon.stdin is not None
                    self._weapon.stdin.write(self._way.text)
                    self._weapon.stdin.close()
                    self.state, self.run = report["state"], report["runs"][-1]
                    try:
                        self._weapon.wait(timeout=_END_SECONDS)
                    except subprocess.TimeoutExpired:
                        self.state = ""
                    return


def reports_in(line: str) -> list[dict[str, Any]]:
    """Return the drain reports in one state of the reports' ConfigMap, as kubectl prints its data."""
    if not line.strip():
        return []
    texts = json.loads(line).values()
    return [report for report in map(json.loads, texts) if "state" in report]
