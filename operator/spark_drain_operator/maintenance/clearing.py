"""Which nodes are to be cleared, and until when."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from spark_drain_operator.clock import format_time, later, read_time
from spark_drain_operator.settings import NodeSettings
from spark_drain_operator.storage.own_objects import GROUP

__all__ = ["Clearing", "clearing_of", "marks_of", "time_given"]

_TIME_GIVEN = f"{GROUP}/clear-within"
"""Annotation of a node that `evacuate` has cordoned: how much time it has, as in ``60s from 2026-11-25T12:00:00Z``."""

_CORDONED = "node.kubernetes.io/unschedulable"
"""Taint that Kubernetes gives a cordoned node, with the time."""
_VALUE_IS_A_TIME = "ToBeDeletedByClusterAutoscaler"
_CLOCKS_SECONDS = 5
"""By how much the clocks of who cordons and of Kubernetes may differ; a node may be cordoned anew soon."""
_YEAR_2000, _YEAR_3000 = 946_684_800, 32_503_680_000


@dataclass(frozen=True)
class Clearing:
    """The intent that a node is clear by a time.

    Parameters
    ----------
    node, uid
        Which node.
    until
        When it must be clear.
    since
        When the clearing began; None where that is when the node is looked at first.
    why
        What has asked for it.
    """

    node: str
    uid: str
    until: datetime
    since: datetime | None = None
    why: str = ""

    def seconds_left(self, now: datetime) -> int:
        """Return how much time is left, at least 0."""
        return max(0, int((self.until - now).total_seconds()))


def marks_of(body: Mapping[str, Any], settings: NodeSettings, time: datetime | None = None) -> dict[str, tuple[datetime | None, int]]:
    """Return by which marks a node is to be cleared: since when it has each where that is said, and how many seconds from then on.

    At a present time, a node that does not say since when it is cordoned was cordoned just now: its taint follows.
    """
    spec = body.get("spec") or {}
    taints = spec.get("taints") or []
    found: dict[str, tuple[datetime | None, int]] = {}
    if spec.get("unschedulable"):
        stated = next((read_time(taint.get("timeAdded")) for taint in taints if taint["key"] == _CORDONED), None)
        found["cordoned"] = _given_to(body, stated or time) or (stated, settings.cordon_seconds)
    for taint in taints:
        if taint["key"] in settings.taints:
            found[taint["key"]] = (read_time(taint.get("timeAdded")) or _time_in_value(taint), settings.taints[taint["key"]])
    return found


def time_given(seconds: int, since: datetime) -> dict[str, str]:
    """Return the annotation by which a node that is cordoned has another time than the operator's setting."""
    return {_TIME_GIVEN: f"{seconds}s from {format_time(since)}"}


def _given_to(body: Mapping[str, Any], cordoned: datetime | None) -> tuple[datetime, int] | None:
    """Return since when a node has how many seconds by its annotation, unless that is of an earlier cordon."""
    given = re.fullmatch(r"([1-9][0-9]{0,8})s from (\S+)", (body["metadata"].get("annotations") or {}).get(_TIME_GIVEN, ""))
    since = read_time(given[2]) if given else None
    if given is None or since is None or (cordoned is not None and later(since, _CLOCKS_SECONDS) < cordoned):
        return None
    return since, int(given[1])


def clearing_of(body: Mapping[str, Any], settings: NodeSettings, first_seen: Callable[[str], datetime], time: datetime) -> Clearing | None:
    """Return the intent that a node tells, None where it tells none; of several marks the one that leaves the least time.

    Parameters
    ----------
    body
        The node.
    settings
        Which taints, and how long a node has.
    first_seen
        Returns since when a mark is known that does not say it itself, or says a time that is to come, of another clock.
    time
        Present time.
    """
    metadata = body["metadata"]
    times = {
        name: (stated if stated is not None and stated <= time else first_seen(name), seconds)
        for name, (stated, seconds) in marks_of(body, settings, time).items()
    }
    if not times:
        return None
    why, until = min(((name, later(since, seconds)) for name, (since, seconds) in times.items()), key=lambda item: item[1])
    return Clearing(metadata["name"], metadata["uid"], until, min(since for since, _ in times.values()), why)


def _time_in_value(taint: Mapping[str, Any]) -> datetime | None:
    value = str(taint.get("value", ""))
    if taint["key"] != _VALUE_IS_A_TIME or not value.isdecimal() or not _YEAR_2000 < int(value) < _YEAR_3000:
        return None
    return datetime.fromtimestamp(int(value), UTC)
