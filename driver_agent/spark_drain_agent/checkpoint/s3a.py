"""S3 by Hadoop's connector: one request writes an object, or writes it only where there is none, or where it is as it was."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types

from spark_drain_agent.agent_thread import side_by_side
from spark_drain_agent.checkpoint.object_store import (
    AT_ONCE,
    IGNORES_ABSENCE,
    IGNORES_CHANGE,
    NO_FILE,
    REFUSES_REPLACING,
    ObjectStore,
)
from spark_drain_agent.spark_internals.calls import attempt
from spark_drain_agent.spark_internals.errors import JavaError, class_of
from spark_drain_agent.spark_internals.filesystems import IF_ABSENT
from spark_drain_agent.spark_internals.session import elements

__all__ = ["S3AStore"]

_IF_UNCHANGED = f"{IF_ABSENT}.etag"
_PACKAGE, _CONFLICT = "org.apache.hadoop.fs.s3a.", 409
_WITHOUT_PROBES = "fs.s3a.create.performance"
"""Option of a file that is created: no requests that ask what is there."""
_TRIES, _BETWEEN_TRIES_SECONDS = 3, 1.0


class S3AStore(ObjectStore):
    """Objects in S3."""

    moves_to_folders_only = False

    @cached_property
    def compares(self) -> bool:
        """Whether the connector has conditional writes, which it may be told not to use."""
        return bool(self._fs.hasPathCapability(self._root, IF_ABSENT))

    @property
    def removes_in_bulk(self) -> bool:
        """Whether the connector is new enough."""
        return self.compares

    def put_if(self, path: Any, text: str, before: str | None) -> bool:
        """Write an object where it still has the tag that it had with this text, or where there is none."""
        if not self.compares:
            return super().put_if(path, text, before)
        tag = None
        if before is not None:
            tag = self._tag(path)  # before the text: one that is written since has another
            if tag is None or not self._holds(path, before):
                return False
        return self._put_where(path, text, tag)

    def put_unchanged(self, path: Any, text: str, check: Callable[[], None]) -> bool:
        """Write an object that has the tag that it had before the check, or that is not there as then."""
        if not self.compares:
            return super().put_unchanged(path, text, check)
        tag = self._tag(path)
        check()
        for again in range(_TRIES):
            time.sleep(again * _BETWEEN_TRIES_SECONDS)
            if self._put_where(path, text, tag):
                return True
            if self._tag(path) != tag:
                return False
        return False

    def obstacle_to_comparing(self, path: Any) -> str:
        """Return the condition that is not honoured, by half as many requests: what a tag was is known without asking again."""
        obstacle = REFUSES_REPLACING
        for _ in range(_TRIES):
            self._written_where(path, str(uuid.uuid4()), None)
            if self._written_where(path, str(uuid.uuid4()), None):
                obstacle = IGNORES_ABSENCE
                continue
            tag = self._tag(path)
            if tag is not None and self._put_where(path, str(uuid.uuid4()), tag):
                return IGNORES_CHANGE if self._written_where(path, str(uuid.uuid4()), tag) else ""
            obstacle = REFUSES_REPLACING
        return obstacle

    def _put_where(self, path: Any, text: str, tag: str | None) -> bool:
        """Write where an object has a tag, or there is none; an answer may be lost, and the connector has asked again."""
        return self._written_where(path, text, tag) or self._holds(path, text)

    def _written_where(self, path: Any, text: str, tag: str | None) -> bool:
        builder = self._fs.createFile(path).recursive().overwrite(True)
        builder = builder.must(IF_ABSENT, True) if tag is None else builder.must(_IF_UNCHANGED, tag)
        try:
            self._write(attempt(builder.build), text)
        except JavaError as error:
            if not _lost_to_another(error):
                raise
            return False
        return True

    def _tag(self, path: Any) -> str | None:
        try:
            return str(attempt(self._fs.getFileStatus, path).getETag())
        except JavaError as error:
            if class_of(error) == NO_FILE:
                return None
            raise

    def remove(self, paths: Any) -> None:
        """Remove as many objects by one request as the store takes; raises `OSError` where it has refused one."""
        if not self.removes_in_bulk:
            super().remove(paths)
            return
        bulk = self._fs.createBulkDelete(self._root)
        try:
            size, count = int(bulk.pageSize()), int(paths.size())
            pages = [paths.subList(first, min(first + size, count)) for first in range(0, count, size)]
            answers = side_by_side(bulk.bulkDelete, pages, AT_ONCE, "spark-drain-files")
            refused = [entry for entries in answers for entry in elements(entries)]
        finally:
            bulk.close()
        if refused:
            raise OSError(f"{len(refused)} objects could not be removed, the first of them {refused[0].getKey()}: {refused[0].getValue()}")

    def _create(self, path: Any) -> Any:
        return self._fs.createFile(path).recursive().overwrite(True).opt(_WITHOUT_PROBES, True).build()

    def _give_up(self, stream: Any) -> None:
        stream.abort()


def _lost_to_another(error: BaseException) -> bool:
    """Whether a store answered 412, or 409, as it may while another request writes the same object."""
    if not isinstance(error, Py4JJavaError):
        return False
    name = class_of(error)
    return name.endswith(".RemoteFileChangedException") or (name.startswith(_PACKAGE) and _status(error.java_exception) == _CONFLICT)


def _status(java_exception: Any) -> int:
    try:
        return int(java_exception.statusCode())
    except JavaError:  # no answer of the store
        return 0
