"""When the parts of a drain were over, as somebody sees it who watches the PipelineDrain."""

import statistics
import subprocess
import threading
import time
from collections.abc import Collection, Iterable, Mapping

from demo.batches import Batch
from demo.feeds import DRAINS
from demo.kubectl import Kubectl

__all__ = ["Parts", "line", "passed"]

_SHOWN = '{.status.notification.uuid}|{.status.scaleDown.requestedAt}|{.status.conditions[?(@.status=="True")].type}{"\\n"}'
"""One line each time when the object has changed. A range would end kubectl's output at the first object without conditions."""
_NOTIFICATION, _SCALE_DOWN = "notification", "scaleDown"
_PARTS = {
    "Accepted": "accepted",
    _NOTIFICATION: "notified",
    "Acknowledged": "acknowledged",
    "SourcesStopped": "sources stopped",
    "Flushed": "flushed",
    "ExecutorsDrained": "executors drained",
    _SCALE_DOWN: "suspended",
    "ScaledDown": "pods gone",
}
"""By what there is then, a condition that holds or a field of the status, in the order of a drain."""


class Parts:
    """Watches one PipelineDrain from before it is applied until closed.

    Parameters
    ----------
    kubectl : Kubectl
        Of its namespace.
    name : str
        Its name.
    """

    def __init__(self, kubectl: Kubectl, name: str) -> None:
        self._process = kubectl.start("get", DRAINS, f"--field-selector=metadata.name={name}", "--watch", f"--output=jsonpath={_SHOWN}")
        self._begun = time.monotonic()
        self._seconds: dict[str, float] = {}
        self._thread = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._thread.start()

    def close(self) -> Mapping[str, float]:
        """End the watch, and return after how many seconds each part was first seen to be over."""
        self._process.terminate()
        self._thread.join(timeout=10)
        self._process.communicate()
        return self._seconds

    def _read(self, process: "subprocess.Popen[str]") -> None:
        for shown in process.stdout or ():
            for part in passed(shown):
                self._seconds.setdefault(part, time.monotonic() - self._begun)


def passed(shown: str) -> set[str]:
    """Return the parts that are over in one line of the watch: the notification's uuid, the time of the suspend, conditions that hold."""
    notification, suspended, conditions = shown.rstrip("\n").split("|")
    there = {*conditions.split(), *([_NOTIFICATION] if notification else []), *([_SCALE_DOWN] if suspended else [])}
    return {part for what, part in _PARTS.items() if what in there}


def line(name: str, seconds: Mapping[str, float], before: Collection[Batch]) -> str:
    """Return the sentence about a drain: its parts in order, and what a batch with records took before it, in seconds."""
    told = ", ".join(f"{part} {seconds[part]:.1f}" for part in _PARTS.values() if part in seconds)
    batch = _median(batch.seconds for batch in before if batch.rows)
    return f"{name}, seconds after kubectl apply: {told}; an ordinary batch took {batch}"


def _median(seconds: Iterable[float]) -> str:
    found = list(seconds)
    return f"{statistics.median(found):.1f} ({min(found):.1f} to {max(found):.1f})" if found else "an unknown time"
