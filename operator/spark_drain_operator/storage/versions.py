"""Whether the API server still has the history that was told before: one that was restored from a backup has another one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Versions", "number_of"]

_log = logging.getLogger(__name__)


def number_of(version: str) -> int:
    """Return a resourceVersion as a number: those of one kind of objects can be compared (KEP-5504); 0 where it is none."""
    return int(version) if version.isdecimal() else 0


class Versions:
    """The newest resourceVersion of each kind that the API server has told; safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[str, int] = {}
        self.restored = threading.Event()
        """Set for good once the API server was seen to be behind what it had told: nothing that is known holds any more."""

    def tell(self, plural: str, version: int) -> None:
        """Take note of a version of a kind of objects."""
        with self._lock:
            self._newest[plural] = max(version, self._newest.get(plural, 0))

    def checked(self, plural: str, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the answer to a list without a resourceVersion: its version is the newest that there is, and not older than any before."""
        known = self._newest.get(plural, 0)  # before it is asked: a watch may tell a newer one meanwhile
        answer = ask()
        found = number_of(str(answer["metadata"].get("resourceVersion", "")))
        if 0 < found < known:
            self.lost(f"its {plural} are at version {found}, and version {known} was known")
        self.tell(plural, found)
        return answer

    def lost(self, sign: str) -> None:
        """Say by what it was seen that the API server was restored."""
        if not self.restored.is_set():
            _log.warning("the API server was restored from a backup (%s): the operator ends, and begins anew with what is there", sign)
            self.restored.set()
