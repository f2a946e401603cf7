"""What an object store does otherwise than a filesystem: an object is there once it is written whole, and is moved by a copy."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types

from spark_drain_agent.spark_internals.calls import attempt
from spark_drain_agent.spark_internals.errors import JavaError, chain_of, class_of
from spark_drain_agent.spark_internals.session import SparkInternals, elements

__all__ = [
    "AT_ONCE",
    "FILE_EXISTS",
    "IGNORES_ABSENCE",
    "IGNORES_CHANGE",
    "NO_FILE",
    "REFUSES_REPLACING",
    "ObjectStore",
    "bytes_of",
    "text_of",
]

AT_ONCE = 16
"""Requests under way at the same time."""

_TRIES = 4
IGNORES_ABSENCE = "the store ignores the condition of a write: an object was replaced that was to be written only where there is none"
IGNORES_CHANGE = "the store ignores the condition of a write: an object was replaced that was to be written only where it is as it was"
REFUSES_REPLACING = (
    "the store refuses a write whose condition is true: no object was replaced that was to be written only where it is as it was"
)

_Contents = TypeVar("_Contents")

NO_FILE = "java.io.FileNotFoundException"
_PRECONDITION_FAILED = "Status Code: 412"
FILE_EXISTS = "org.apache.hadoop.fs.FileAlreadyExistsException"


def text_of(jvm: Any, filesystem: Any, path: Any) -> str | None:
    """Return a file's text, or None where there is no file."""
    return _contents(filesystem, path, lambda stream: str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")))


def bytes_of(jvm: Any, filesystem: Any, path: Any) -> bytes | None:
    """Return what a file holds, or None where there is no file."""
    return _contents(filesystem, path, lambda stream: bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream)))


def _contents(filesystem: Any, path: Any, read: Callable[[Any], _Contents]) -> _Contents | None:
    while True:
        try:
            stream = attempt(filesystem.open, path)
        except JavaError as error:
            if class_of(error) == NO_FILE:
                return None
            raise
        try:
            return read(stream)
        except JavaError as error:
            if not _has_changed(error):
                raise
        finally:
            stream.close()


def _has_changed(error: BaseException) -> bool:
    """Return whether an object was replaced, or removed, since its stream was opened; S3's connector has several words for that."""
    name = class_of(error)
    if name == NO_FILE or name.endswith(".RemoteFileChangedException"):
        return True
    return isinstance(error, Py4JJavaError) and _PRECONDITION_FAILED in chain_of(error.java_exception)


class ObjectStore:
    """Objects by their Hadoop paths, with what every connector has; `checkpoint.s3a` and `checkpoint.gcs` know more of theirs.

    Spark's file managers are not used: the default one deletes a file before it copies the new one to its place, and the abortable one logs
    what fails, and goes on.

    Parameters
    ----------
    internals
        Access to the JVM.
    filesystem
        Hadoop's.
    root
        Path of the checkpoint.
    """

    moves_to_folders_only = True
    """Whether an object can be moved only into a folder that was made before."""

    def __init__(self, internals: SparkInternals, filesystem: Any, root: Any) -> None:
        self._internals, self._fs, self._root = internals, filesystem, root

    def _holds(self, path: Any, text: str) -> bool:
        return text_of(self._internals.jvm, self._fs, path) == text

    @property
    def compares(self) -> bool:
        """Whether it is the store that decides what `put_if` says."""
        return False

    @property
    def removes_in_bulk(self) -> bool:
        """Whether one request removes many objects."""
        return False

    def put(self, path: Any, text: str) -> None:
        """Create or replace an object as a whole; what fails is raised."""
        self._write(self._create(path), text)

    def put_if(self, path: Any, text: str, before: str | None) -> bool:
        """Write an object where it still holds this text, or with None where there is none; return whether that was so."""
        if before is not None and not self._holds(path, before):
            return False
        try:
            self._write(attempt(self._fs.create, path, before is not None), text)
        except JavaError as error:
            if class_of(error) != FILE_EXISTS:
                raise
            return False
        return True

    def put_unchanged(self, path: Any, text: str, check: Callable[[], None]) -> bool:
        """Create or replace an object, after a check, where nobody else has since this began; return whether that was so."""
        check()
        self.put(path, text)
        return True

    def obstacle_to_comparing(self, path: Any) -> str:
        """Return which condition of a write the store does not honour, or "", by what becomes of an object that is then there.

        Each is tried several times, as another driver that tries the same may remove the object in between.
        """
        if not any(not self.put_if(path, str(uuid.uuid4()), None) for _ in range(_TRIES)):
            return IGNORES_ABSENCE
        if not any(self.put_unchanged(path, "", lambda: None) for _ in range(_TRIES)):
            return REFUSES_REPLACING
        if self.put_unchanged(path, "", lambda: self.put(path, str(uuid.uuid4()))):
            return IGNORES_CHANGE
        return ""

    def copy(self, status: Any, target: Any) -> None:
        """Create or replace an object with what another one holds, of which a listing has told: by two requests in S3."""
        read = self._fs.openFile(status.getPath()).withFileStatus(status).build().get()
        try:
            stream = self._create(target)
            try:
                self._internals.jvm.org.apache.hadoop.io.IOUtils.copyBytes(read, stream, self._internals.hadoop_conf(), False)
            except BaseException:
                self._give_up(stream)
                raise
            stream.close()
        finally:
            read.close()

    def paths_of(self, listed: Any) -> Any:
        """Return the paths of a Java list of Hadoop's FileStatus, as another one, without a question to the JVM about each of them."""
        jvm = self._internals.jvm
        of = jvm.java.lang.Class.forName("[Lorg.apache.hadoop.fs.FileStatus;")
        statuses = jvm.java.util.Arrays.copyOf(listed.toArray(), int(listed.size()), of)
        return self._internals.list_of(jvm.org.apache.hadoop.fs.FileUtil.stat2Paths(statuses))

    def remove(self, paths: Any) -> None:
        """Remove the objects of a Java list, which are in the checkpoint; nothing happens to those that are not there."""
        for path in elements(paths):
            self._fs.delete(path, False)

    def _create(self, path: Any) -> Any:
        return self._fs.create(path, True)

    def _give_up(self, stream: Any) -> None:
        """Let go of a stream: were it closed, the object would be there in part."""

    def _write(self, stream: Any, text: str) -> None:
        try:
            stream.write(bytearray(text.encode()))
        except BaseException:
            self._give_up(stream)
            raise
        attempt(stream.close)  # this writes the object, or is refused
