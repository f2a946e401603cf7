"""Every stateful operator of Structured Streaming: a query, what it must have written after a drain, and what the drain says of it.

What must have been written is computed from the input in plain Python. docs/operators.md is checked against this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout

from tests.semantics import user_code
from tests.semantics.user_code import Collector
from tests.semantics.warm import MIDNIGHT, PROVIDERS, Event, Input

__all__ = ["CASES", "CLICKS", "FIRST", "Case"]

FIRST = [Event(number, "abc"[number % 3], 2 * number) for number in range(12)]
SECOND = [Event(number, "abc"[number % 3], 2 * number + 20) for number in range(12, 24)]
EVENTS = FIRST + SECOND
WATERMARK = max(event.at for event in EVENTS) - 12
CLICKS = tuple(
    [Event(event.id, event.key, event.at + 3) for event in events if event.id % 2 == 0] + [Event(orphan, "z", at)]
    for events, orphan, at in ((FIRST, 100, 5), (SECOND, 101, 60))
)
"""Clicks three seconds after every other event, and one for no event in each file."""

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One kind of query.

    Parameters
    ----------
    name
        As docs/operators.md calls it.
    build
        Makes the query of the events and the clicks.
    truth
        All rows that it must have written after the drain; with output mode update the last row of each key.
    flushed
        Those of them that the drain must have emitted.
    operators
        Operator, disposition, state rows before and after the drain.
    mode
        Output mode.
    files
        The events, file by file.
    providers
        State providers; HDFS alone where another row has the same physical operator on both.
    idle
        Whether the query rests when it has read all; processing-time timers run batch after batch.
    since
        The first release of Spark that has the operator.
    """

    name: str
    build: Callable[[Input, Input], DataFrame]
    truth: Rows
    flushed: Rows
    operators: tuple[tuple[str, str, int, int], ...]
    mode: str = "append"
    files: Sequence[Sequence[Event]] = (FIRST, SECOND)
    providers: tuple[str, ...] = tuple(PROVIDERS)
    idle: bool = True
    since: tuple[int, int] = (3, 5)

    @property
    def refused(self) -> list[str]:
        """The operators that stateLossPolicy Refuse names."""
        return sorted({name for name, disposition, _, _ in self.operators if disposition == "forgotten"})


# -- queries -------------------------------------------------------------------------------------------------------------------------------


def _ids() -> Any:
    return F.collect_list("id").alias("ids")


def _start(window: str) -> Any:
    return (F.col(f"{window}.start").cast("long") - MIDNIGHT).alias("start")


def _windows(frame: DataFrame, size: int, slide: int) -> DataFrame:
    return _open_windows(frame, size, slide).select(_start("window"), "ids")


def _open_windows(frame: DataFrame, size: int, slide: int) -> DataFrame:
    return frame.groupBy(F.window("at", f"{size} seconds", f"{slide} seconds")).agg(_ids())


def _recent(frame: DataFrame) -> DataFrame:
    recent = _open_windows(frame, 10, 10).where("window.end > current_timestamp() - interval 10000 days")
    return recent.select(_start("window"), "ids")


def _sessions(frame: DataFrame) -> DataFrame:
    return frame.groupBy(F.session_window("at", "8 seconds"), "key").agg(_ids()).select("key", _start("session_window"), "ids")


def _chained(frame: DataFrame) -> DataFrame:
    inner = frame.groupBy(F.window("at", "10 seconds")).agg(_ids())
    outer = inner.groupBy(F.window("window", "30 seconds").alias("wide")).agg(F.flatten(F.collect_list("ids")).alias("ids"))
    return outer.select(_start("wide"), "ids")


def _joined(how: str, times: str = "c.at BETWEEN e.at AND e.at + INTERVAL 10 SECONDS") -> Callable[[Input, Input], DataFrame]:
    def build(events: Input, clicks: Input) -> DataFrame:
        left, right = events.stream().alias("e"), clicks.stream().alias("c")
        joined = left.join(right, F.expr(f"e.id = c.id AND {times}"), how)
        return joined.select("e.id") if how == "left_semi" else joined.select("e.id", "c.id")

    return build


def _joined_windows(events: Input, clicks: Input) -> DataFrame:
    left, right = (source.stream().select("id", F.window("at", "30 seconds").alias("wide")) for source in (events, clicks))
    return left.alias("e").join(right.alias("c"), ["id", "wide"]).select("e.id", "c.id")


def _starts_of_windows(frame: DataFrame) -> DataFrame:
    return (
        frame.select("id", F.window("at", "10 seconds").alias("window"))
        .groupBy("window.start")
        .agg(_ids())
        .select((F.col("start").cast("long") - MIDNIGHT).alias("start"), "ids")
    )


def _in_pandas(function: Any, timeout: str) -> Callable[[Input, Input], DataFrame]:
    return lambda events, _: (
        events.stream().groupBy("key").applyInPandasWithState(function, user_code.SCHEMA, "ids STRING", "append", timeout)
    )


def _with_processor(processor: Collector, time_mode: str) -> Callable[[Input, Input], DataFrame]:
    def build(events: Input, _: Input) -> DataFrame:
        grouped = events.stream().groupBy("key")
        transform = grouped.transformWithStateInPandas if processor._pandas else grouped.transformWithState
        return transform(processor, user_code.SCHEMA, "append", time_mode)

    return build


# -- truth ---------------------------------------------------------------------------------------------------------------------------------


def _window_truth(size: int, slide: int) -> Rows:
    starts = range(-size + slide, max(event.at for event in EVENTS) + 1, slide)
    found = [(start, tuple(event.id for event in EVENTS if start <= event.at < start + size)) for start in starts]
    return [row for row in found if row[1]]


def _open(rows: Rows, size: int) -> Rows:
    """Return the windows that the watermark had not passed before the drain."""
    return [row for row in rows if row[0] + size > WATERMARK]


def _session_truth(events: Sequence[Event]) -> Rows:
    """Each key has one session per file: its events are 6 seconds apart, and the files 22 seconds."""
    return [
        (key, min(event.at for event in events if event.key == key), tuple(event.id for event in events if event.key == key))
        for key in "abc"
    ]


def _per_key(events: Sequence[Event]) -> Rows:
    return [(key, tuple(event.id for event in events if event.key == key)) for key in "abc"]


def _texts(events: Sequence[Event]) -> Rows:
    return [(key, " ".join(map(str, ids))) for key, ids in _per_key(events)]


def _numbers(events: Iterable[Event]) -> Rows:
    return [(event.id,) for event in events]


_MATCHED = [(event.id, event.id) for event in EVENTS if event.id % 2 == 0]
_UNMATCHED = [(event.id, None) for event in EVENTS if event.id % 2]
_IN_ONE_WINDOW = [(event.id, event.id) for event in EVENTS if event.id % 2 == 0 and event.at // 30 == (event.at + 3) // 30]
_OPEN_UNMATCHED = [(event.id, None) for event in SECOND if event.id % 2]
_TUMBLING, _SLIDING, _WIDE = _window_truth(10, 10), _window_truth(10, 5), _window_truth(30, 30)

CASES = [
    Case(
        name="stateless",
        build=lambda events, _: events.stream().where("id % 2 = 0").select("id"),
        truth=_numbers(event for event in EVENTS if event.id % 2 == 0),
        flushed=[],
        operators=(),
        providers=("hdfs",),
    ),
    Case(
        name="tumbling window",
        build=lambda events, _: _windows(events.stream(), 10, 10),
        truth=_TUMBLING,
        flushed=_open(_TUMBLING, 10),
        operators=(("Aggregate", "flushed", 2, 0),),
    ),
    Case(
        name="tumbling window, filtered by current_timestamp()",
        build=lambda events, _: _recent(events.stream()),
        truth=_TUMBLING,
        flushed=_open(_TUMBLING, 10),
        operators=(("Aggregate", "flushed", 2, 0),),
        providers=("hdfs",),
    ),
    Case(
        name="sliding window",
        build=lambda events, _: _windows(events.stream(), 10, 5),
        truth=_SLIDING,
        flushed=_open(_SLIDING, 10),
        operators=(("Aggregate", "flushed", 5, 0),),
        providers=("hdfs",),
    ),
    Case(
        name="session window",
        build=lambda events, _: _sessions(events.stream()),
        truth=_session_truth(FIRST) + _session_truth(SECOND),
        flushed=_session_truth(SECOND),
        operators=(("Aggregate", "flushed", 3, 0),),
    ),
    Case(
        name="window, update mode",
        build=lambda events, _: _windows(events.stream(), 10, 10),
        truth=_TUMBLING,
        flushed=[],
        operators=(("Aggregate", "flushed", 2, 0),),
        mode="update",
        providers=("hdfs",),
    ),
    Case(
        name="window of windows",
        build=lambda events, _: _chained(events.stream()),
        truth=_WIDE,
        flushed=_open(_WIDE, 30),
        operators=(("Aggregate", "flushed", 1, 0), ("Aggregate", "flushed", 2, 0)),
    ),
    Case(
        name="stream-stream join, inner",
        build=_joined("inner"),
        truth=_MATCHED,
        flushed=[],
        operators=(("Join", "flushed", 17, 0),),
        providers=("hdfs",),
    ),
    Case(
        name="stream-stream join, left outer",
        build=_joined("left_outer"),
        truth=_MATCHED + _UNMATCHED,
        flushed=_OPEN_UNMATCHED,
        operators=(("Join", "flushed", 17, 0),),
        providers=("hdfs",),
    ),
    Case(
        name="stream-stream join, full outer",
        build=_joined("full_outer"),
        truth=[*_MATCHED, *_UNMATCHED, (None, 100), (None, 101)],
        flushed=[*_OPEN_UNMATCHED, (None, 101)],
        operators=(("Join", "flushed", 17, 0),),
    ),
    Case(
        name="stream-stream join, left semi",
        build=_joined("left_semi"),
        truth=[(left,) for left, _ in _MATCHED],
        flushed=[],
        operators=(("Join", "flushed", 11, 0),),
        providers=("hdfs",),
    ),
    Case(
        name="stream-stream join on windows",
        build=_joined_windows,
        truth=_IN_ONE_WINDOW,
        flushed=[],
        operators=(("Join", "flushed", 19, 0),),
        providers=("hdfs",),
    ),
    Case(
        name="stream-stream join, bounded on one side",
        build=_joined("inner", "c.at <= e.at + INTERVAL 10 SECONDS"),
        truth=_MATCHED,
        flushed=[],
        operators=(("Join", "forgotten", 26, 14),),
    ),
    Case(
        name="stream-stream join, without a bound",
        build=_joined("inner", "c.at IS NOT NULL"),
        truth=_MATCHED,
        flushed=[],
        operators=(("Join", "forgotten", 38, 38),),
        providers=("hdfs",),
    ),
    Case(
        name="dropDuplicates",
        build=lambda events, _: events.stream().dropDuplicates(["id"]).select("id"),
        truth=_numbers(EVENTS),
        flushed=[],
        operators=(("Deduplicate", "forgotten", 24, 24),),
        files=(FIRST, SECOND + FIRST[-3:]),
    ),
    Case(
        name="dropDuplicates with the watermark's column",
        build=lambda events, _: events.stream().dropDuplicates(["id", "at"]).select("id"),
        truth=_numbers(EVENTS),
        flushed=[],
        operators=(("Deduplicate", "forgotten", 6, 0),),
        files=(FIRST, SECOND + FIRST[-3:]),
        providers=("hdfs",),
    ),
    Case(
        name="dropDuplicatesWithinWatermark",
        build=lambda events, _: events.stream().dropDuplicatesWithinWatermark(["id"]).select("id"),
        truth=_numbers(EVENTS),
        flushed=[],
        operators=(("DeduplicateWithinWatermark", "forgotten", 12, 0),),
        files=(FIRST, SECOND + FIRST[-3:]),
    ),
    Case(
        name="applyInPandasWithState, event-time timeout",
        build=_in_pandas(user_code.until_event_time, GroupStateTimeout.EventTimeTimeout),
        truth=_texts(EVENTS),
        flushed=_texts(EVENTS),
        operators=(("FlatMapGroupsInPandasWithState", "flushed", 3, 0),),
    ),
    Case(
        name="applyInPandasWithState, processing-time timeout",
        build=_in_pandas(user_code.until_processing_time, GroupStateTimeout.ProcessingTimeTimeout),
        truth=_texts(EVENTS),
        flushed=_texts(EVENTS),
        operators=(("FlatMapGroupsInPandasWithState", "flushed", 3, 0),),
        idle=False,
        providers=("hdfs",),
    ),
    Case(
        name="applyInPandasWithState, no timeout",
        build=_in_pandas(user_code.timerless, GroupStateTimeout.NoTimeout),
        truth=_texts(FIRST) + _texts(SECOND),
        flushed=[],
        operators=(("FlatMapGroupsInPandasWithState", "forgotten", 3, 3),),
        providers=("hdfs",),
    ),
    Case(
        name="transformWithStateInPandas, event-time timer",
        since=(4, 0),
        build=_with_processor(Collector("event"), "EventTime"),
        truth=_texts(EVENTS),
        flushed=_texts(EVENTS),
        operators=(("TransformWithStateInPySpark", "flushed", 3, 0),),
        providers=("rocksdb",),
    ),
    Case(
        name="transformWithStateInPandas, state with a time to live",
        since=(4, 0),
        build=_with_processor(Collector("none", ttl_ms=3_600_000), "ProcessingTime"),
        truth=_texts(FIRST) + _texts(SECOND),
        flushed=[],
        operators=(("TransformWithStateInPySpark", "forgotten", 3, 0),),
        providers=("rocksdb",),
        idle=False,
    ),
    Case(
        name="transformWithStateInPandas, timer that sets itself anew",
        since=(4, 0),
        build=_with_processor(Collector("processing", rearm=True), "ProcessingTime"),
        truth=_texts(EVENTS),
        flushed=_texts(EVENTS),
        operators=(("TransformWithStateInPySpark", "residual", 3, 3),),
        providers=("rocksdb",),
        idle=False,
    ),
    Case(
        name="transformWithState, processing-time timer",
        since=(4, 1),
        build=_with_processor(Collector("processing", pandas=False), "ProcessingTime"),
        truth=_texts(EVENTS),
        flushed=_texts(EVENTS),
        operators=(("TransformWithStateInPySpark", "flushed", 3, 0),),
        providers=("rocksdb",),
        idle=False,
    ),
    Case(
        name="aggregation, complete mode",
        build=lambda events, _: events.stream().groupBy("key").agg(_ids()),
        truth=_per_key(EVENTS),
        flushed=_per_key(EVENTS),
        operators=(("Aggregate", "forgotten", 3, 3),),
        mode="complete",
    ),
    Case(
        name="aggregation by a window's start",
        build=lambda events, _: _starts_of_windows(events.stream()),
        truth=_TUMBLING,
        flushed=[],
        operators=(("Aggregate", "forgotten", 6, 6),),
        mode="update",
        providers=("hdfs",),
    ),
    Case(
        name="aggregation without watermark",
        build=lambda events, _: events.stream(None).groupBy("key").agg(_ids()),
        truth=_per_key(EVENTS),
        flushed=[],
        operators=(("Aggregate", "forgotten", 3, 3),),
        mode="update",
        providers=("hdfs",),
    ),
    Case(
        name="streaming limit",
        build=lambda events, _: events.stream().limit(10).select("id"),
        truth=_numbers(EVENTS[:10]),
        flushed=[],
        operators=(("GlobalLimit", "forgotten", 1, 1),),
    ),
    Case(
        name="streaming limit, without a watermark",
        build=lambda events, _: events.stream(None).dropDuplicates(["id"]).limit(10).select("id"),
        truth=_numbers(EVENTS[:10]),
        flushed=[],
        operators=(("GlobalLimit", "forgotten", 1, 1), ("Deduplicate", "forgotten", 24, 24)),
    ),
]
