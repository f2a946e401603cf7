"""The files of one checkpoint, on any Hadoop filesystem: renamed where a rename is atomic, object by object where it is not."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from spark_drain_agent.agent_thread import side_by_side
from spark_drain_agent.checkpoint import local_files
from spark_drain_agent.checkpoint.gcs import GcsStore
from spark_drain_agent.checkpoint.object_store import AT_ONCE, NO_FILE, ObjectStore, bytes_of, text_of
from spark_drain_agent.checkpoint.s3a import S3AStore
from spark_drain_agent.checkpoint.stores import ATOMIC_CONF, rename_atomically
from spark_drain_agent.spark_internals.calls import attempt
from spark_drain_agent.spark_internals.errors import JavaError, class_of, in_words
from spark_drain_agent.spark_internals.filesystems import GCS, S3A, Filesystem, filesystems_of
from spark_drain_agent.spark_internals.session import SparkInternals, elements

__all__ = ["CheckpointFiles", "CheckpointIOError", "CheckpointLeasedError", "nothing"]

_LISTED = re.compile(
    r"\{path=[\w+.-]+:(?://[^/]*)?(?P<path>/.*?); isDirectory=false; length=(?P<length>\d+); .*?modification_time=(?P<changed>\d+);"
)
"""In the words of Hadoop's FileStatus."""

_COPIED_BYTES = 64 << 20
"""What goes through the driver to be copied; more is moved by the store itself, which takes more requests for each object."""

_MOST = 2
_LOCAL = "file"
_PERMITTED = "does the driver have permission to write there?"
_MANAGER_CONF = "spark.sql.streaming.checkpointFileManagerClass"
_HIDES_FAILURES = ".AbortableStreamBasedCheckpointFileManager"
_HDFS_CLOSE = "dfs.client.block.write.locateFollowingBlock"
"""An HDFS client that closes a file asks again until its last block is known to the name node, each time after twice the time."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_CONNECTORS = {S3A: S3AStore, GCS: GcsStore}


def nothing() -> None:
    """Check nothing."""


class CheckpointIOError(OSError):
    """The filesystem refused a move of files that a drain needs."""


class CheckpointLeasedError(Exception):
    """Another driver, which is alive, is working on the checkpoint; the message names it."""


def _in_words(error: OSError) -> str:
    denied = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    return f"{error.strerror}: {_PERMITTED}" if denied else str(error.strerror)


@dataclass(frozen=True)
class _Listed:
    """A file of a listing: its name relative to the checkpoint, its length in bytes, when it was changed, and its place in the listing."""

    name: str
    length: int
    changed_ms: int
    index: int


class CheckpointFiles:
    """Files and folders below a checkpoint folder; names are relative, with ``/``.

    Parameters
    ----------
    internals
        Access to the JVM.
    root
        URI of the checkpoint folder.

    Attributes
    ----------
    check_before_change
        Called before anything is changed; raises where another driver has the checkpoint now (`checkpoint.lease`).
    """

    def __init__(self, internals: SparkInternals, root: str) -> None:
        self.root = root
        self._internals = internals
        self._jvm = internals.jvm
        self._conf = _without_long_sleep(internals.hadoop_conf())
        self._root = self._jvm.org.apache.hadoop.fs.Path(root)
        self._fs = self._root.getFileSystem(self._conf)
        self.check_before_change: Callable[[], None] = nothing

    @cached_property
    def _replacing(self) -> Any:
        return self._internals.checkpoint_file_manager(self._root, self._conf)

    @cached_property
    def _context(self) -> Any:
        return self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(self._root.toUri(), self._conf)

    @cached_property
    def _filesystems(self) -> list[Filesystem]:
        return filesystems_of(self._internals, self.root)

    @cached_property
    def _objects(self) -> ObjectStore | None:
        if rename_atomically(self._filesystems, self._internals.session_conf(ATOMIC_CONF)):
            return None
        return _CONNECTORS.get(self._filesystems[0].implementation, ObjectStore)(self._internals, self._fs, self._root)

    @property
    def renames_atomically(self) -> bool:
        """Whether a folder is renamed as a whole or not at all."""
        return self._objects is None

    @property
    def spark_hides_failures(self) -> bool:
        """Whether Spark, where it writes here, logs that a write has failed and goes on, as one of its file managers does."""
        return self._internals.session_conf(_MANAGER_CONF).endswith(_HIDES_FAILURES)

    @property
    def obstacle_to_replacing(self) -> str:
        """Why a file here cannot be replaced by another one, or ""."""
        if self._objects is not None:
            return ""
        try:
            _ = self._replacing
        except JavaError as error:
            return in_words(error)
        return ""

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name) if name else self._root

    def elsewhere(self, root: str) -> CheckpointFiles:
        """Return the files below another URI."""
        return CheckpointFiles(self._internals, root)

    def uri(self, name: str) -> str:
        """Return the URI of a name."""
        return str(self._path(name).toString())

    def is_file(self, name: str) -> bool:
        """Return whether there is a file of that name."""
        return bool(self._fs.isFile(self._path(name)))

    def is_folder(self, name: str) -> bool:
        """Return whether there is a folder of that name."""
        return bool(self._fs.isDirectory(self._path(name)))

    def _listed(self, folder: str) -> Any:
        try:
            return attempt(self._fs.listStatus, self._path(folder))
        except JavaError as error:
            if class_of(error) == NO_FILE:
                return ()
            raise

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, without checksum files; empty where there is no folder."""
        return sorted(name for name in (str(item.getPath().getName()) for item in self._listed(folder)) if not name.startswith("."))

    def below(self, folder: str) -> list[str]:
        """Return the names of all files in a folder and its folders, relative to the checkpoint; empty where there is no folder."""
        if self._own is not None:
            return sorted(str(path.relative_to(self._own)) for path in local_files.below(self._own / folder))
        return sorted(self.sizes(folder))

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes in bytes of what `below` returns, by name."""
        if self._own is not None:
            return {str(path.relative_to(self._own)): path.stat().st_size for path in local_files.below(self._own / folder)}
        return {file.name: file.length for file in self._named(self._all_below(folder))}

    def below_all(self, folders: Sequence[str]) -> list[str]:
        """Return what `below` returns for each of several folders, listed side by side."""
        return [name for names in self._side_by_side(self.below, folders) for name in names]

    def _named(self, listed: Any) -> list[_Listed]:
        if listed is None:
            return []
        root = str(self._root.toUri().getPath()).rstrip("/") + "/"
        if len(self._filesystems) > 1:  # a view, of whose items only their text is empty
            return [
                _Listed(str(item.getPath().toUri().getPath()).removeprefix(root), item.getLen(), item.getModificationTime(), index)
                for index, item in enumerate(elements(listed))
            ]
        # As one text: there may be ten thousands, and each question to the JVM takes its time.
        text = str(listed.toString())
        found = [
            _Listed(item["path"].removeprefix(root), int(item["length"]), int(item["changed"]), index)
            for index, item in enumerate(_LISTED.finditer(text))
        ]
        if len(found) != int(listed.size()):
            raise CheckpointIOError(f"{self.root}: a listing cannot be understood: {text[:200]}")
        return found

    def _all_below(self, folder: str) -> Any:
        try:
            listed = attempt(self._fs.listFiles, self._path(folder), True)
            return attempt(self._jvm.org.apache.hadoop.util.functional.RemoteIterators.toList, listed)
        except JavaError as error:
            if class_of(error) == NO_FILE:
                return None
            raise

    def folders_by_age(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, the least recently changed first."""
        if self.renames_atomically:
            folders = (item for item in self._listed(folder) if item.isDirectory())
            changed = {str(item.getPath().getName()): int(item.getModificationTime()) for item in folders}
        else:  # where folders have no time of their own
            changed = {}
            for file in self._named(self._all_below(folder)):
                name, inside, _ = file.name.removeprefix(f"{folder}/").partition("/")
                if inside:
                    changed[name] = max(file.changed_ms, changed.get(name, 0))
        return [name for name in sorted(changed, key=lambda name: (changed[name], name)) if not name.startswith(".")]

    def read(self, name: str) -> str | None:
        """Return a file's text, or None where there is no file."""
        if self._own is not None and local_files.is_missing(self._own / name):  # an exception in the JVM takes longer
            return None
        return text_of(self._jvm, self._fs, self._path(name))

    def read_bytes(self, name: str) -> bytes | None:
        """Return what a file holds, or None where there is no file."""
        return bytes_of(self._jvm, self._fs, self._path(name))

    def read_all(self, names: Sequence[str]) -> dict[str, str | None]:
        """Return the texts of files, read side by side; None where there is no file."""
        return dict(zip(names, self._side_by_side(self.read, names), strict=True))

    def write_all(self, texts: Mapping[str, str]) -> None:
        """Create or replace files, side by side: in no order, and after a crash some of them."""
        self._change_side_by_side(lambda name: self._write(name, texts[name]), list(texts))

    def write(self, name: str, text: str) -> None:
        """Create or replace a file; readers see the old or the new text, never a part."""
        self.check_before_change()
        self._write(name, text)

    def replace(self, name: str, text: str) -> bool:
        """Write a file as `write` does; where the store compares, only if nobody else has since. Return whether that was so."""
        if self._objects is not None:
            return self._objects.put_unchanged(self._path(name), text, self.check_before_change)
        self.write(name, text)
        return True

    def _write(self, name: str, text: str) -> None:
        if self._objects is not None:
            self._objects.put(self._path(name), text)
            return
        self._make_parent(name)
        if self._local_root is not None:
            try:
                local_files.replace(self._local_root / name, text)
            except OSError as error:
                raise CheckpointIOError(f"{self.uri(name)} could not be replaced: {_in_words(error)}") from error
            return
        self._write_atomically(name, text.encode())

    def _write_atomically(self, name: str, content: bytes) -> None:
        stream = self._replacing.createAtomic(self._path(name), True)
        try:
            stream.write(bytearray(content))
        except BaseException:
            stream.cancel()
            raise
        stream.close()

    def write_bytes(self, name: str, content: bytes) -> None:
        """Create or replace a file of the work copy, which nobody else reads or writes."""
        self.check_before_change()
        if self._objects is None:
            self._write_atomically(name, content)
            return
        stream = attempt(self._fs.create, self._path(name), True)
        stream.write(bytearray(content))
        stream.close()

    @property
    def compares(self) -> bool:
        """Whether of those that call `write_if` at the same time one succeeds, also where there is a file."""
        return self._objects is not None and self._objects.compares

    def obstacle_to_comparing(self, name: str) -> str:
        """Return which condition of a write a store does not honour that is said to compare, or ""; the file there is replaced."""
        return self._objects.obstacle_to_comparing(self._path(name)) if self._objects is not None else ""

    def write_if(self, name: str, text: str, before: str | None) -> bool:
        """Write a file where it still holds this text, or with None where there is none; return whether that was so."""
        self.check_before_change()
        if self._objects is not None:
            return self._objects.put_if(self._path(name), text, before)
        if before is None and not self._created_empty(name):
            return False
        try:
            self.write(name, text)
        except BaseException:
            if before is None:
                with suppress(*JavaError, OSError):
                    self._delete_empty(name)
            raise
        return True

    def _delete_empty(self, name: str) -> None:
        """Remove a file that this process has made and could not fill, as on a full disk: nobody else's is empty for long."""
        if self.read(name) == "":
            self.delete(name)

    def _created_empty(self, name: str) -> bool:
        self._make_parent(name)
        if self._local_root is not None:
            try:
                (self._local_root / name).touch(exist_ok=False)
            except FileExistsError:
                return False
            return True
        try:
            self._fs.create(self._path(name), False).close()
        except JavaError:  # HDFS has several for a file that another one has created, or is creating
            if not self.is_file(name):
                raise
            return False
        return True

    @cached_property
    def _own(self) -> Path | None:
        """The folder on the driver's machine, where its URI says so; None for other filesystems."""
        return Path(str(self._root.toUri().getPath())) if self._fs.getUri().getScheme() == _LOCAL else None

    @cached_property
    def _local_root(self) -> Path | None:
        """The folder on the driver's machine, also where a view leads to one; None for other filesystems."""
        if self._own is not None or len(self._filesystems) == 1:
            return self._own
        uri = self._fs.resolvePath(self._root).toUri()
        return Path(str(uri.getPath())) if uri.getScheme() == _LOCAL else None

    def delete(self, name: str) -> None:
        """Remove a file or a whole folder; nothing happens where there is none."""
        self.check_before_change()
        self._fs.delete(self._path(name), True)

    def drop_checksum(self, name: str) -> None:
        """Remove what a local filesystem has left of a file that was removed by hand: Spark could not write it again."""
        self.check_before_change()
        if self._local_root is not None:
            local_files.checksum(self._local_root / name).unlink(missing_ok=True)

    def delete_files(self, *names: str) -> None:
        """Remove files, by one request where the store can; nothing happens to those that are not there."""
        self.check_before_change()
        if self._objects is not None:
            paths = self._jvm.java.util.ArrayList()
            for name in names:
                paths.add(self._path(name))
            self._objects.remove(paths)
        else:
            for name in names:
                self._fs.delete(self._path(name), False)

    def empty(self, *folders: str) -> None:
        """Remove what is in folders, in which there may be ten thousands of files; where they can be left at no cost, they stay."""
        self.check_before_change()
        if self._objects is None or not self._objects.removes_in_bulk:
            for folder in folders:
                self._fs.delete(self._path(folder), True)
            return
        paths = self._jvm.java.util.ArrayList()
        for listed in self._side_by_side(self._all_below, folders):
            if listed is not None:
                paths.addAll(self._objects.paths_of(listed))
        if not paths.isEmpty():
            self.check_before_change()
            self._objects.remove(paths)

    def merge(self, source: str, target: str, names: Sequence[str] | None = None) -> None:
        """Move what is in a folder into another one, in place of what has the same name there; goes on where it was interrupted.

        Without a target it is one rename, which not every store carries out as a whole: at any moment each file is in one of the two.

        Parameters
        ----------
        source, target
            Names of the folders.
        names
            Relative to the source: nothing else is moved. None moves all, and removes the source.
        """
        self.check_before_change()
        if names is None and not self.is_folder(target):
            self._make_parent(target)
            self._rename(source, target)
            return
        moved = self.below(source) if names is None else [f"{source}/{name}" for name in names]
        self._change_side_by_side(partial(self._move_file, source, target), moved)
        if names is None:
            self.delete(source)

    def _move_file(self, source: str, target: str, name: str) -> None:
        there = target + name.removeprefix(source)
        if self._objects is None or self._objects.moves_to_folders_only:
            self._make_parent(there)
        try:
            self._rename(name, there)
        except (*JavaError, OSError):  # what an interrupted move has left, perhaps
            if not (self.is_file(there) and self.is_file(name)):
                raise
            self._fs.delete(self._path(there), False)
            self._rename(name, there)

    def _rename(self, source: str, target: str) -> None:
        if not attempt(self._fs.rename, self._path(source), self._path(target)):
            raise CheckpointIOError(f"{self.uri(source)} could not be renamed to {self.uri(target)}")

    def take(self, source: str, target: str, choose: Callable[[list[str]], list[str]]) -> bool:
        """Bring what is needed of a folder to another one, in place of what has the same name there; return whether any of it was moved.

        By a rename of all of it, where that is atomic. Elsewhere little is copied, and much is moved by `merge`.

        Parameters
        ----------
        source, target
            Names of the folders; without a source nothing is done.
        choose
            Returns those that are needed of the names of all files, relative to the source.
        """
        if self.renames_atomically:
            there = self.is_folder(source)
            if there:
                self.merge(source, target)
            return there
        listed = self._all_below(source)
        present = {file.name.removeprefix(f"{source}/"): file for file in self._named(listed)}
        needed = choose(list(present))
        if sum(present[name].length for name in needed) <= _COPIED_BYTES:
            self._copy_objects(source, target, listed, [present[name] for name in needed])
            return False
        self.merge(source, target, needed if len(needed) < len(present) / _MOST else None)  # of most, all take fewer requests
        return True

    def copy(self, source: str, target: str) -> None:
        """Copy a file, in place of what has its name, or a folder with all that is in it to a name that does not exist."""
        self.check_before_change()
        if self._objects is not None:
            listed = self._all_below(source)
            self._copy_objects(source, target, listed, self._named(listed))
            return
        self._make_parent(target)
        if self._own is not None:
            local_files.copy(self._own / source, self._own / target)
            return
        copied = self._context.util().copy(self._path(source), self._path(target), False, True)
        if not copied:
            raise CheckpointIOError(f"{self.uri(source)} could not be copied to {self.uri(target)}")

    def _copy_objects(self, source: str, target: str, listed: Any, chosen: Iterable[_Listed]) -> None:
        objects = self._objects
        assert objects is not None
        pairs = [(listed.get(file.index), self._path(target + file.name.removeprefix(source))) for file in chosen]
        self._change_side_by_side(lambda pair: objects.copy(*pair), pairs)

    def _change_side_by_side(self, change: Callable[[_Item], None], items: Sequence[_Item]) -> None:
        def checked(item: _Item) -> None:
            self.check_before_change()  # a process may stand still in the middle of many changes, and another driver take over
            change(item)

        self._side_by_side(checked, items)

    def _side_by_side(self, call: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Call with each item, many at a time, and return the results in order; raises the first error."""
        if len(items) == 1 or self._own is not None:  # a thread needs a connection to the JVM of its own, which takes longer than a file
            return [call(item) for item in items]
        return side_by_side(call, items, AT_ONCE, "spark-drain-files")

    def _make_parent(self, name: str) -> None:
        if not self._makes_parent(name):
            parent = self._path(name).getParent().toString()
            raise CheckpointIOError(f"{parent} could not be created: {_PERMITTED}")

    def _makes_parent(self, name: str) -> bool:
        if self._own is None:
            return bool(self._fs.mkdirs(self._path(name).getParent()))
        try:
            (self._own / name).parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return False
        return True


def _without_long_sleep(conf: Any) -> Any:
    """Let an HDFS client begin with 10 ms in place of 400, which each small file took, and wait as long in all."""
    delay, tries = f"{_HDFS_CLOSE}.initial.delay.ms", f"{_HDFS_CLOSE}.retries"
    if conf.getInt(delay, 400) == 400 and conf.getInt(tries, 5) == 5:  # as they come
        conf.setInt(delay, 10)
        conf.setInt(tries, 10)
    return conf
