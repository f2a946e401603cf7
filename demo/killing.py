"""kill -9 of the driver in the middle of a drain."""

import json
import subprocess
import threading
from collections.abc import Mapping
from typing import Any

from spark_drain_store.channel import config_map_names

from demo.errors import DemoError
from demo.job import APPLICATION
from demo.kubectl import Kubectl

_, REPORTS = config_map_names(APPLICATION)
_DEADLY_STATES = ("Flushing", "Reporting")  # both are beyond the point of no return
_END_SECONDS = 60.0


class Killer:
    """Waits for a drain to flush, then kills every process of the driver's container.

    The shell that does it is opened beforehand: a flush can be over sooner than kubectl has started.

    Parameters
    ----------
    kubectl : Kubectl
        Of the namespace of the application.
    """

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self.state = ""
        self.run = ""
        self._shell = kubectl.start("exec", "--stdin", f"{APPLICATION}-driver", "--", "sh", stdin=True)
        self._watch = kubectl.start(
            "get", "configmaps", f"--field-selector=metadata.name={REPORTS}", "--watch", "--output=jsonpath={.data}{'\\n'}"
        )
        self._thread = threading.Thread(target=self._strike, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the helpers."""
        for process in (self._watch, self._shell):
            process.kill()
            process.communicate()
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
                    assert self._shell.stdin is not None
                    # -1: every process but the container's first one, which ends with its only child.
                    self._shell.stdin.write("kill -9 -1\n")
                    self._shell.stdin.flush()
                    self.state, self.run = report["state"], report["runs"][-1]
                    try:
                        self._shell.wait(timeout=_END_SECONDS)
                    except subprocess.TimeoutExpired:
                        self.state = ""
                    return


def reports_in(line: str) -> list[dict[str, Any]]:
    """Return the drain reports in one state of the reports' ConfigMap, as kubectl prints its data."""
    if not line.strip():
        return []
    texts = json.loads(line).values()
    return [report for report in map(json.loads, texts) if "state" in report]
