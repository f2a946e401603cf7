"""What the watches have told last: a pass reads it without asking the API server."""

from __future__ import annotations

import json
import math
import threading
import time
import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from spark_drain_operator.storage.versions import Versions, number_of

__all__ = ["Collection", "WatchCache"]

_MOST_GONE = 10_000
_SILENT_SECONDS = 180.0
"""A watch that nothing is heard of for longer is not believed: the API server ends each one earlier, and tells its version every minute."""


def _everything(_: Mapping[str, Any]) -> bool:
    return True


def _no_index(_: Mapping[str, Any]) -> str:
    return ""


@dataclass(frozen=True)
class Collection:
    """Objects that are watched.

    Parameters
    ----------
    api_version, plural
        Which objects.
    query
        Selects those that are watched.
    holds
        Whether an object is one of them.
    index
        By what they are found together.
    otherwise
        What happens while they cannot be watched.
    """

    api_version: str
    plural: str
    query: Mapping[str, str] = field(default_factory=dict)
    holds: Callable[[Mapping[str, Any]], bool] = _everything
    index: Callable[[Mapping[str, Any]], str] = _no_index
    otherwise: str = "each pass asks for what it needs"


def _version(body: Mapping[str, Any]) -> int:
    return number_of(str(body["metadata"].get("resourceVersion", "")))


_Key = tuple[str, str, str]
"""Plural, namespace, name."""


class WatchCache:
    """The newest known version of each watched object, packed: there may be thousands of applications.

    What is not known is None and has to be asked for; nothing here says that there is no such object, but for `together`. A write's answer
    is as good as an event (`put`), so that the operator reads its own writes. Safe between threads.

    Parameters
    ----------
    clock
        Seconds that only grow; for tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._collections: dict[str, Collection] = {}
        self._objects: dict[_Key, tuple[int, str, bytes]] = {}
        self._index: dict[tuple[str, str, str], set[_Key]] = defaultdict(set)
        self._gone: OrderedDict[_Key, int] = OrderedDict()
        self._heard: dict[tuple[str, str], float] = {}
        self._reads = threading.local()
        self.versions = Versions()
        """Those that were told."""

    def watch(self, collection: Collection) -> None:
        """Keep objects of a collection from now on."""
        with self._lock:
            self._collections[collection.plural] = collection

    @contextmanager
    def bypassed(self) -> Iterator[None]:
        """Have this thread ask the API server for everything."""
        before, self._reads.bypassed = getattr(self._reads, "bypassed", False), True
        try:
            with self.reading():
                yield
        finally:
            self._reads.bypassed = before

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Begin a pass, of which `answered` tells."""
        before, self._reads.answered = self.answered, False
        try:
            yield
        finally:
            self._reads.answered = before

    @property
    def answered(self) -> bool:
        """Whether anything in this pass was read from here."""
        return bool(getattr(self._reads, "answered", False))

    def get(self, plural: str, namespace: str, name: str) -> dict[str, Any] | None:
        """Return an object of which the watch runs, None where it has to be asked for."""
        with self._lock:
            found = self._objects.get((plural, namespace, name)) if self._is_served(plural, namespace) else None
        if found is None:
            return None
        self._reads.answered = True
        return _unpacked(found[2])

    def lacks(self, plural: str, namespace: str, name: str) -> bool:
        """Whether the watch runs and has told of no such object; one that is not selected may be there all the same."""
        with self._lock:
            lacking = self._is_served(plural, namespace) and (plural, namespace, name) not in self._objects
        self._reads.answered = self.answered or lacking
        return lacking

    def together(self, plural: str, namespace: str, index: str) -> list[dict[str, Any]] | None:
        """Return all objects of a namespace that have the same index, None where they have to be asked for."""
        with self._lock:
            if not self._is_served(plural, namespace):
                return None
            found = [self._objects[key][2] for key in sorted(self._index.get((plural, namespace, index), ()))]
        self._reads.answered = True
        return [_unpacked(packed) for packed in found]

    def names(self, plural: str, namespace: str, index: str) -> list[str]:
        """Return the names of the known objects of an index; nothing says that there are no others, or that these are still there."""
        with self._lock:
            return sorted(key[2] for key in self._index.get((plural, namespace, index), ()))

    def _is_served(self, plural: str, namespace: str) -> bool:
        if getattr(self._reads, "bypassed", False) or self.versions.restored.is_set():
            return False
        return self._clock() < max(self._heard.get((plural, where), -math.inf) for where in (namespace, "")) + _SILENT_SECONDS

    def heard(self, plural: str, namespace: str, *, always: bool = False) -> None:
        """Say that the watch of a namespace, "" for all, runs; ``always``: that somebody else looks after it."""
        with self._lock:
            self._heard[plural, namespace] = math.inf if always else self._clock()

    def lost(self, plural: str, namespace: str) -> None:
        """Say that a watch does not run, or has missed something."""
        with self._lock:
            self._heard.pop((plural, namespace), None)

    def put(self, plural: str, body: Mapping[str, Any]) -> bool:
        """Keep an object where it is newer than what is known; return whether it was."""
        collection = self._collections.get(plural)
        if collection is None:
            return False
        self.versions.tell(plural, _version(body))
        with self._lock:
            return self._put(collection, body)

    def _put(self, collection: Collection, body: Mapping[str, Any]) -> bool:
        key = _key(collection.plural, body)
        version = _version(body)
        if version <= self._known(key):
            return False
        self._drop(key)
        if collection.holds(body):
            index = collection.index(body)
            self._objects[key] = (version, index, zlib.compress(json.dumps(body).encode(), 1))
            self._index[key[0], key[1], index].add(key)
            self._gone.pop(key, None)
        else:
            self._bury(key, version)
        return True

    def _known(self, key: _Key) -> int:
        return max(self._objects[key][0] if key in self._objects else 0, self._gone.get(key, 0))

    def remove(self, plural: str, body: Mapping[str, Any]) -> None:
        """Forget an object that was deleted, or is not selected any more."""
        key, version = _key(plural, body), _version(body)
        self.versions.tell(plural, version)
        with self._lock:
            if key in self._objects and self._objects[key][0] > version:
                return
            self._drop(key)
            self._bury(key, version)

    def contradicted(self, plural: str, body: Mapping[str, Any], listed: int) -> bool:
        """Return whether an object in a list as it was at a version is older than what was known of it by then."""
        key = _key(plural, body)
        with self._lock:
            return _version(body) < self._known(key) <= listed

    def keep_only(self, plural: str, namespace: str, listed: Set[tuple[str, str]], version: int) -> Iterator[dict[str, Any]]:
        """Forget what is not in a list as it was at a version (namespace and name of each object); yield the last known form of that."""
        with self._lock:
            there = [key for key in self._objects if _is_in(key, plural, namespace) and key[1:] not in listed]
            gone = [(key, self._objects[key][2]) for key in there if self._objects[key][0] <= version]
            for key, _ in gone:
                self._drop(key)
                self._bury(key, version)
        return (_unpacked(packed) for _, packed in gone)

    def _drop(self, key: _Key) -> None:
        known = self._objects.pop(key, None)
        if known is not None:
            where = (key[0], key[1], known[1])
            self._index[where].discard(key)
            if not self._index[where]:
                del self._index[where]

    def _bury(self, key: _Key, version: int) -> None:
        """Remember until when an object was there: the answer to an earlier write may come late."""
        self._gone[key] = max(version, self._gone.pop(key, 0))
        if len(self._gone) > _MOST_GONE:
            self._gone.popitem(last=False)


def _is_in(key: _Key, plural: str, namespace: str) -> bool:
    return key[0] == plural and namespace in ("", key[1])


def _key(plural: str, body: Mapping[str, Any]) -> _Key:
    metadata = body["metadata"]
    return plural, str(metadata.get("namespace", "")), str(metadata["name"])


def _unpacked(packed: bytes) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(zlib.decompress(packed))
    return body
