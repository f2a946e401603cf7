"""A metadata store in a folder: one file per key, so that a person can read it with ``cat``."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import stat
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from spark_drain_store.protocol import MAX_TOTAL_BYTES, ConflictError, Snapshot, StoreError, StoreUnavailableError, check_size
from spark_drain_store.reentrant_event import ReentrantEvent

__all__ = ["FileStore"]

_KEY = re.compile(r"[A-Za-z0-9][-._A-Za-z0-9]*")  # what a ConfigMap accepts; it also keeps a key from leaving the folder
_POLL_SECONDS = 0.1
_LOCK_SECONDS = 10.0
_LOCK_POLL_SECONDS = 0.01


class FileStore:
    """`MetadataStore` over a folder of one file system, shared by any number of processes of one machine.

    Writers take turns by an advisory lock on ``.lock``. A write of several keys is not atomic for readers that ignore the lock;
    `read` takes it too. Links are not followed: who may write the folder need not be able to read what the driver can.
    The version is a digest of the contents, so it survives restarts and needs no counter.

    Parameters
    ----------
    folder
        Created on the first write.
    holds
        Returns whether a file of that name is one of the store's: others, which were there before, are not looked at.
    """

    def __init__(self, folder: Path, holds: Callable[[str], bool] = bool) -> None:
        self._folder = folder
        self._holds = holds
        self._closed = ReentrantEvent()

    @contextmanager
    def _locked(self, *, exclusive: bool) -> Iterator[None]:
        try:
            if self._folder.is_symlink():
                raise OSError(errno.ELOOP, "it is a symbolic link")
            descriptor = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise StoreUnavailableError(f"the metadata store {self._folder} cannot be opened: {error}") from error
        try:
            self._wait_for(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # to close it is not enough where the application has just forked a process
            os.close(descriptor)

    def _wait_for(self, descriptor: int, kind: int) -> None:
        give_up = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if time.monotonic() > give_up:
                    raise StoreUnavailableError(
                        f"the metadata store {self._folder} is locked: a process has held {self._folder / '.lock'} for {_LOCK_SECONDS:g} s"
                    ) from error
            time.sleep(_LOCK_POLL_SECONDS)

    def _entries(self) -> dict[str, str]:
        try:
            return {
                path.name: _text(path)
                for path in sorted(self._folder.iterdir())
                if _KEY.fullmatch(path.name) and self._holds(path.name) and stat.S_ISREG(path.lstat().st_mode)
            }
        except OSError as error:
            raise StoreUnavailableError(f"the metadata store {self._folder} cannot be read: {error}") from error

    def read(self) -> Snapshot:
        """See `MetadataStore.read`."""
        try:
            present = stat.S_ISDIR(self._folder.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            present = False
        except OSError as error:  # Path.is_dir() raises it too: a folder above may not be looked into
            raise StoreUnavailableError(f"the metadata store {self._folder} cannot be read: {error}") from error
        if not present:
            return Snapshot(version="", entries={})
        with self._locked(exclusive=False):
            entries = self._entries()
        return Snapshot(version=_digest(entries), entries=entries)

    def write(self, changes: Mapping[str, str | None], *, if_version: str | None = None) -> str:
        """See `MetadataStore.write`."""
        for key in changes:
            if not _KEY.fullmatch(key):
                raise StoreError(f"key {key!r} is not allowed: letters, digits, '-', '_' and '.', beginning with a letter or digit")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailableError(f"the metadata store {self._folder} cannot be created: {error}") from error
        with self._locked(exclusive=True):
            before = self._entries()
            present = _digest(before)
            if if_version is not None and if_version != present:
                raise ConflictError(f"the store {self._folder} was changed by another writer: read it again")
            after = {**before, **{key: value for key, value in changes.items() if value is not None}}
            for key in [key for key, value in changes.items() if value is None]:
                after.pop(key, None)
            check_size(after, before)
            try:
                self._apply(before, after)
            except OSError as error:
                raise StoreUnavailableError(f"the metadata store {self._folder} cannot be written: {error}") from error
        return _digest(after)

    def _apply(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        for key, value in after.items():
            if before.get(key) != value:
                # Rename over the old file: a reader or a crash never sees half a message.
                part = self._folder / f".new-{uuid.uuid4()}"
                try:
                    with part.open("x", encoding="utf-8") as stream:  # its permissions follow the umask: the other side may be another user
                        stream.write(value)
                        stream.flush()
                        os.fsync(stream.fileno())
                    part.replace(self._folder / key)
                except OSError:
                    part.unlink(missing_ok=True)  # a full disk is not to be filled with what did not fit
                    raise
        for key in before.keys() - after.keys():
            (self._folder / key).unlink(missing_ok=True)

    def watch(self, since: str, timeout: float) -> Snapshot | None:
        """See `MetadataStore.watch`."""
        deadline = time.monotonic() + timeout
        while True:
            snapshot = self.read()
            if snapshot.version != since:
                return snapshot
            remaining = deadline - time.monotonic()
            if remaining <= 0 or self._closed.wait(min(_POLL_SECONDS, remaining)):
                return None

    def close(self) -> None:
        """End the watches of this object; the folder stays."""
        self._closed.set()


def _text(path: Path) -> str:
    """Return what a file holds, and no more of it than the store would take."""
    with path.open("rb") as stream:
        return stream.read(MAX_TOTAL_BYTES + 1).decode("utf-8", errors="replace")


def _digest(entries: Mapping[str, str]) -> str:
    if not entries:
        return ""  # as before the folder is made: a watcher must not take the making of it for a change
    digest = hashlib.sha256()
    for key in sorted(entries):
        for part in (key, entries[key]):
            data = part.encode("utf-8", errors="surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]
