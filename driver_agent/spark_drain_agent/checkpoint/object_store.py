"""What an object store can do that a filesystem cannot: one request writes a file whole, or only where there is none (Hadoop's S3A)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types

from spark_drain_agent.spark_internals.errors import JavaError, class_of
from spark_drain_agent.spark_internals.filesystems import IF_ABSENT
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["AT_ONCE", "NO_FILE", "ObjectStore"]

AT_ONCE = 16
"""Requests under way at the same time."""

NO_FILE = "java.io.FileNotFoundException"

_IF_UNCHANGED = f"{IF_ABSENT}.etag"
_S3A, _CONFLICT = "org.apache.hadoop.fs.s3a.", 409
_WITHOUT_PROBES = "fs.s3a.create.performance"
"""Option of a file that is created: no requests that ask what is there."""


class ObjectStore:
    """Objects by their Hadoop paths.

    Spark's file managers are not used: the default one deletes a file before it copies the new one to its place, and the abortable one logs
    what fails, and goes on.

    Parameters
    ----------
    internals
        Access to the JVM.
    filesystem
        Hadoop's, one of `OBJECT_STORES`.
    """

    def __init__(self, internals: SparkInternals, filesystem: Any) -> None:
        self._internals, self._fs = internals, filesystem

    def compares(self, path: Any) -> bool:
        """Return whether `put_if` is possible below a path."""
        return bool(self._fs.hasPathCapability(path, IF_ABSENT))

    def put(self, path: Any, text: str) -> None:
        """Create or replace an object by one request, whose failure is raised."""
        self._write(self._overwriting(path), text)

    def put_if(self, path: Any, text: str, tag: str | None) -> bool:
        """Write an object where it still has this tag, or with None where there is none; return whether that was so."""
        builder = self._fs.createFile(path).overwrite(True)
        builder = builder.must(IF_ABSENT, True) if tag is None else builder.must(_IF_UNCHANGED, tag)
        try:
            self._write(builder, text)
        except JavaError as error:
            if not _lost_to_another(error):
                raise
            return False
        return True

    def tag(self, path: Any) -> str | None:
        """Return the store's name for what an object holds now, None where there is none."""
        try:
            return str(self._fs.getFileStatus(path).getETag())
        except JavaError as error:
            if class_of(error) == NO_FILE:
                return None
            raise

    def copy(self, status: Any, target: Any) -> None:
        """Create or replace an object with what another one holds, of which a listing has told: by two requests."""
        read = self._fs.openFile(status.getPath()).withFileStatus(status).build().get()
        try:
            stream = self._overwriting(target).build()
            try:
                self._internals.jvm.org.apache.hadoop.io.IOUtils.copyBytes(read, stream, self._internals.hadoop_conf(), False)
            except BaseException:
                stream.abort()
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

    def remove(self, root: Any, paths: Any) -> None:
        """Remove objects in bulk.

        Parameters
        ----------
        root
            Folder in which all of them are.
        paths
            Java list.

        Raises
        ------
        OSError
            The store has refused one.
        """
        bulk = self._fs.createBulkDelete(root)
        try:
            size, count = int(bulk.pageSize()), int(paths.size())
            pages = [paths.subList(first, min(first + size, count)) for first in range(0, count, size)]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                refused = [entry for entries in pool.map(bulk.bulkDelete, pages) for entry in entries]
        finally:
            bulk.close()
        if refused:
            raise OSError(f"{len(refused)} objects could not be removed, the first of them {refused[0].getKey()}: {refused[0].getValue()}")

    def _overwriting(self, path: Any) -> Any:
        return self._fs.createFile(path).overwrite(True).opt(_WITHOUT_PROBES, True)

    @staticmethod
    def _write(builder: Any, text: str) -> None:
        stream = builder.build()
        try:
            stream.write(bytearray(text.encode()))
        except BaseException:
            stream.abort()
            raise
        stream.close()


def _lost_to_another(error: BaseException) -> bool:
    """Whether a store answered 412, or 409, as it may while another request writes the same object."""
    if not isinstance(error, Py4JJavaError):
        return False
    name = class_of(error)
    return name.endswith(".RemoteFileChangedException") or (name.startswith(_S3A) and _status(error.java_exception) == _CONFLICT)


def _status(java_exception: Any) -> int:
    try:
        return int(java_exception.statusCode())
    except JavaError:  # no answer of the store
        return 0
