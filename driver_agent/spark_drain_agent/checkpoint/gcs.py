"""Google Cloud Storage by Google's connector: each write replaces the object that was there when its stream was opened, or fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types

from spark_drain_agent.checkpoint.object_store import ObjectStore
from spark_drain_agent.spark_internals.calls import attempt
from spark_drain_agent.spark_internals.errors import JavaError, chain_of

__all__ = ["GcsStore"]

_PRECONDITION_FAILED = re.compile(r"\b412 Precondition Failed|FileAlreadyExistsException")


class GcsStore(ObjectStore):
    """Objects in Google Cloud Storage."""

    @property
    def compares(self) -> bool:
        """That it does: each write of the connector names the generation of the object that it replaces, 0 where there is none."""
        return True

    def put_if(self, path: Any, text: str, before: str | None) -> bool:
        """Write an object that nobody has written since its stream was opened, and that held this text then."""
        if before is not None and not self._holds(path, before):  # looked at twice, since a stream that is given up keeps a thread
            return False
        try:
            stream = attempt(self._fs.create, path, before is not None)
            if before is not None and not self._holds(path, before):
                return False
            self._write(stream, text)
        except JavaError as error:
            if not _lost_to_another(error):
                raise
            return False
        return True

    def put_unchanged(self, path: Any, text: str, check: Callable[[], None]) -> bool:
        """Write an object that nobody has written since its stream was opened, before the check."""
        try:
            stream = self._create(path)
            check()
            self._write(stream, text)
        except JavaError as error:
            if not _lost_to_another(error):
                raise
            return self._holds(path, text)  # as where the answer was lost, and the connector has asked again
        return True


def _lost_to_another(error: BaseException) -> bool:
    return isinstance(error, Py4JJavaError) and _PRECONDITION_FAILED.search(chain_of(error.java_exception)) is not None
