"""Functions and processors with state, as a user would write them; Python workers import this file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming.state import GroupState
from spark_drain_agent import is_drain_pane

try:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
except ImportError:  # Spark 3.5
    StatefulProcessor = object  # type: ignore[assignment,misc]

SCHEMA = "key STRING, ids STRING"
_HOUR_MS = 3_600_000
_BEYOND_THE_EVENTS_MS = 1_767_225_600_000 + 100_000  # 100 s after the midnight that the events count from


def _joined(before: str, ids: Iterable[object]) -> str:
    return " ".join(filter(None, [before, *map(str, ids)]))


def _emit(key: tuple[Any, ...], ids: str) -> pd.DataFrame:
    return pd.DataFrame({"key": [key[0]], "ids": [ids]})


def _until_timeout(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    if state.hasTimedOut:
        (ids,) = state.get
        state.remove()
        yield _emit(key, ids)
        return
    before = state.get[0] if state.exists else ""
    state.update((_joined(before, (number for frame in frames for number in frame["id"])),))


def until_event_time(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Emit a key's ids when the watermark passes a point beyond all events."""
    fired = state.hasTimedOut
    yield from _until_timeout(key, frames, state)
    if not fired:
        state.setTimeoutTimestamp(_BEYOND_THE_EVENTS_MS)


def until_event_time_or_drain(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Do the same, and emit at once what comes in the flush."""
    if state.hasTimedOut or not is_drain_pane():
        yield from until_event_time(key, frames, state)
        return
    before = state.get[0] if state.exists else ""
    state.remove()
    yield _emit(key, _joined(before, (number for frame in frames for number in frame["id"])))


def until_processing_time(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Emit a key's ids an hour after its last one."""
    fired = state.hasTimedOut
    yield from _until_timeout(key, frames, state)
    if not fired:
        state.setTimeoutDuration(_HOUR_MS)


def timerless(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Emit each batch's ids of a key at once, and remember them for ever."""
    ids = _joined("", (number for frame in frames for number in frame["id"]))
    state.update((_joined(state.get[0] if state.exists else "", ids.split()),))
    yield _emit(key, ids)


class Collector(StatefulProcessor):
    """Remembers a key's ids and emits them when its timer fires.

    Parameters
    ----------
    timer
        ``event``, ``processing`` or ``none``: without a timer a batch's ids are emitted at once.
    rearm
        Whether the timer sets itself anew and keeps the state.
    ttl_ms
        Time to live of the state.
    pandas
        Whether rows come and go as DataFrames.
    """

    def __init__(self, timer: str, *, rearm: bool = False, ttl_ms: int | None = None, pandas: bool = True) -> None:
        self._timer, self._rearm, self._ttl_ms, self._pandas = timer, rearm, ttl_ms, pandas

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("ids", "ids STRING", self._ttl_ms)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803  # pyspark's names
        found = [number for frame in rows for number in frame["id"]] if self._pandas else [row["id"] for row in rows]
        before = self._remembered()
        if not before:
            if self._timer == "event":
                self._handle.registerTimer(_BEYOND_THE_EVENTS_MS)
            elif self._timer == "processing":
                self._handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + _HOUR_MS)
        self._state.update((_joined(before, found),))
        if self._timer == "none":
            yield self._out(key, _joined("", found))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803  # pyspark's names
        yield self._out(key, self._remembered())
        if self._rearm:
            self._handle.registerTimer(expiredTimerInfo.getExpiryTimeInMs() + 1000)
        else:
            self._state.clear()

    def _remembered(self) -> str:
        value = self._state.get()
        return value[0] if value else ""

    def _out(self, key: Any, ids: str) -> Any:
        return _emit(key, ids) if self._pandas else Row(key=key[0], ids=ids)

    def close(self) -> None:
        pass


class Periodic(Collector):
    """Emits a key's ids each time that the watermark has gone on by a second.

    Parameters
    ----------
    careful
        Whether it sets no timer in the batch of a drain.
    """

    def __init__(self, *, careful: bool) -> None:
        super().__init__("event")
        self._careful = careful

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803  # pyspark's names
        if not list(self._handle.listTimers()):
            self._handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 1000)
        self._state.update((_joined(self._remembered(), (number for frame in rows for number in frame["id"])),))
        yield from ()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803  # pyspark's names
        if not (self._careful and is_drain_pane()):
            self._handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 1000)
        if found := self._remembered():
            self._state.clear()
            yield self._out(key, found)


class Remembering(Collector):
    """A later version of the collector, which has one more variable."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        super().init(handle)
        self._more = handle.getValueState("more", "text STRING")


class Prompt(Collector):
    """Emits at once what comes in the batch of a drain, after which no timer fires."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803  # pyspark's names
        if not is_drain_pane():
            yield from super().handleInputRows(key, rows, timerValues)
            return
        yield self._out(key, _joined(self._remembered(), (number for frame in rows for number in frame["id"])))
        self._state.clear()
