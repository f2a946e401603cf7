"""Keeps one collection in the cache: a list first, then a watch from its version on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from spark_drain_store.kube_client import ApiError, ApiUnavailableError, KubeClient, WatchStream, collection_path

from spark_drain_operator.periodic import Periodic
from spark_drain_operator.storage.lists import LARGE_PAGE, METADATA_ONLY, pages_of
from spark_drain_operator.storage.versions import number_of
from spark_drain_operator.storage.watch_cache import Collection, WatchCache

__all__ = ["Informer"]

_WATCH_SECONDS, _QUIET_SECONDS = 120.0, 75.0
"""The API server tells its version every minute; where nothing comes, the connection may be dead."""
_AGAIN_SECONDS, _AWAY_SECONDS, _REFUSED_SECONDS = 1.0, 4.0, 15.0

_log = logging.getLogger(__name__)


class Informer:
    """Lists and watches in a thread of its own. While it cannot, passes ask the API server.

    Parameters
    ----------
    client
        The API server.
    cache
        Where the objects go.
    collection, namespace
        What is watched; "" means in all namespaces.
    changed
        Told of each object that is new, changed or gone, after the cache knows it.
    """

    def __init__(
        self,
        client: KubeClient,
        cache: WatchCache,
        collection: Collection,
        namespace: str,
        changed: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._client, self._cache, self._collection, self._namespace = client, cache, collection, namespace
        self._changed = changed
        self._path = collection_path(collection.api_version, namespace, collection.plural)
        self._version = ""
        self._problem = ""
        self._failures = 0
        self._stream: WatchStream | None = None
        self._stopped = threading.Event()
        self._thread = Periodic(f"informer-{collection.plural}-{namespace}", self._follow)
        cache.watch(collection)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End the watch."""
        self._stopped.set()
        self._thread.stop()
        if self._stream is not None:
            self._stream.close()

    def _follow(self) -> float:
        """List where that is due, then watch once; return after how many seconds to go on."""
        try:
            if not self._version:
                self._list()
            else:
                # A watch from a version that a restored server has not come to yet is answered, and silent.
                self._cache.versions.checked(self._collection.plural, self._ask_version)
            self._watch()
        except (ApiError, ApiUnavailableError) as error:
            return self._failed(error)
        except Exception:
            _log.exception("watch of %s: defect in the operator", self._path)
            return self._failed(None)
        if not self._version:
            return self._again(_REFUSED_SECONDS)
        self._failures = 0
        return 0.0

    def _again(self, most: float) -> float:
        """Return after how many seconds to try once more: a list may be long."""
        self._failures += 1
        return float(min(most, _AGAIN_SECONDS * 2.0 ** min(self._failures - 1, 8)))

    def _failed(self, error: ApiError | ApiUnavailableError | None) -> float:
        self._cache.lost(self._collection.plural, self._namespace)
        self._version = ""
        if error is not None and str(error) != self._problem:
            self._problem = str(error)
            _log.warning("%s cannot be watched (%s): %s", self._path, error, self._collection.otherwise)
        if isinstance(error, ApiError) and error.status != 410:
            return _REFUSED_SECONDS
        return self._again(_AWAY_SECONDS if isinstance(error, ApiUnavailableError) and not error.status else _REFUSED_SECONDS)

    def _ask_version(self) -> dict[str, Any]:
        return self._client.request("GET", self._path, query={"limit": "1"}, accept=METADATA_ONLY)

    def _list(self) -> None:
        plural, listed = self._collection.plural, set[tuple[str, str]]()
        pages = pages_of(self._client, self._path, self._collection.query, page=LARGE_PAGE)
        page: dict[str, Any] | None = self._cache.versions.checked(plural, partial(next, pages))
        assert page is not None
        version = str(page["metadata"]["resourceVersion"])
        while page is not None:
            for body in page.pop("items", None) or []:
                # Items of a list have neither, and the cache answers as the API server does.
                body.setdefault("apiVersion", page["apiVersion"])
                body.setdefault("kind", str(page["kind"]).removesuffix("List"))
                listed.add((body["metadata"].get("namespace", ""), body["metadata"]["name"]))
                if self._cache.contradicted(plural, body, number_of(version)):
                    name = body["metadata"]["name"]
                    self._cache.versions.lost(f"{self._path}/{name} is older than what was known of it")
                if self._cache.put(plural, body):
                    self._changed(body)
            page = next(pages, None)
        for body in self._cache.keep_only(plural, self._namespace, listed, number_of(version)):
            self._changed(body)
        self._version = version
        self._problem = ""

    def _watch(self) -> None:
        query = {**self._collection.query, "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        stream = self._stream = self._client.watch(self._path, query, _WATCH_SECONDS, quiet_seconds=_QUIET_SECONDS)
        opened, understood, silent = time.monotonic(), True, True
        self._heard()
        try:
            for event in stream:
                understood = not self._stopped.is_set() and self._take(str(event.get("type")), event.get("object") or {})
                if not understood:
                    break
                silent = False
                self._heard()
        finally:
            self._stream = None
            stream.close()
        if not understood or silent or time.monotonic() - opened < _AGAIN_SECONDS:
            # Too old, cut off at once, or without even a bookmark: list again, and let passes ask until then.
            self._version = ""
            self._cache.lost(self._collection.plural, self._namespace)

    def _heard(self) -> None:
        if self._version.isdecimal():
            self._cache.heard(self._collection.plural, self._namespace)

    def _take(self, type_: str, body: Mapping[str, Any]) -> bool:
        if type_ not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            return False
        if type_ == "DELETED":
            self._cache.remove(self._collection.plural, body)
        elif type_ != "BOOKMARK":
            self._cache.put(self._collection.plural, body)
        self._version = str(body["metadata"]["resourceVersion"])
        self._cache.versions.tell(self._collection.plural, number_of(self._version))
        if type_ != "BOOKMARK":
            self._changed(body)
        return True
