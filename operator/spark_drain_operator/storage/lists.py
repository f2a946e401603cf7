"""Lists, some objects at a time: whoever may create them decides how many there are, and how large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spark_drain_store.kube_client import AnswerTooLargeError, KubeClient

__all__ = ["LARGE_PAGE", "METADATA_ONLY", "metadata_of", "objects_of", "pages_of"]

LARGE_PAGE = 5
"""How many ConfigMaps or pods are asked for at a time: each may have a megabyte, or six where a character is written as ``\\u003c``."""

_DIVISOR = 4

METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Accept header of a list."""


def pages_of(
    client: KubeClient, path: str, query: Mapping[str, str], *, page: int, accept: str = "application/json"
) -> Iterator[dict[str, Any]]:
    """Yield the pages of a list; one that nobody reads to is not asked for, and one that is longer than an answer may be is divided.

    Parameters
    ----------
    client
        The API server.
    path, query
        Which objects.
    page
        How many are asked for at a time.
    accept
        In which form.
    """
    token: str | None = ""
    while token is not None:
        try:
            answer = client.request(
                "GET", path, query={**query, "limit": str(page), **({"continue": token} if token else {})}, accept=accept
            )
        except AnswerTooLargeError:
            if page == 1:
                raise
            page = max(1, page // _DIVISOR)
            continue
        token = answer["metadata"].get("continue") or None
        yield answer


def objects_of(
    client: KubeClient, path: str, query: Mapping[str, str], *, page: int, accept: str = "application/json"
) -> Iterator[dict[str, Any]]:
    """Yield all objects of a list; only one page is in memory. See `pages_of`."""
    for answer in pages_of(client, path, query, page=page, accept=accept):
        yield from answer.pop("items", None) or []


def metadata_of(client: KubeClient, path: str, query: Mapping[str, str], *, page: int) -> Iterator[dict[str, Any]]:
    """Yield the metadata of all objects of a list; see `objects_of`."""
    for item in objects_of(client, path, query, page=page, accept=METADATA_ONLY):
        yield item["metadata"]
