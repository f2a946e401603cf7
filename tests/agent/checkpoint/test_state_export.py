"""Keyed state is written to Parquet before a drain lets go of it, and the next version begins with it."""

from __future__ import annotations

import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet as pq  # type: ignore[import-untyped]  # pyarrow ships no types
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import ArrayType, DataType, IntegerType, LongType, MapType, StringType, StructType
from spark_drain_agent.checkpoint.empty_state import EmptyStateError
from spark_drain_agent.checkpoint.exported_columns import distinct_names, with_distinct_names
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import read_journal
from spark_drain_agent.checkpoint.restore import check_restorable, restore
from spark_drain_agent.checkpoint.state_export import StatePart, parts_of
from spark_drain_agent.spark_internals.session import SparkInternals

from examples.state_export import v1, v2
from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.harness import Feed, exactly, ids_in
from tests.agent.warm import Warm
from tests.support.waiting import eventually

PROVIDER = "spark.sql.streaming.stateStore.providerClass"


@pytest.fixture(autouse=True)
def default_provider(request: pytest.FixtureRequest) -> Iterator[None]:
    warm: Warm | None = request.getfixturevalue("warm") if "warm" in request.fixturenames else None
    yield
    if warm is not None:
        warm.session.conf.unset(PROVIDER)


def metadata(operator: int, name: str, store: str, properties: str | None = None) -> dict[str, Any]:
    return {"operatorId": operator, "operatorName": name, "stateStoreName": store, "operatorProperties": properties}


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ([], []),
        ([metadata(0, "stateStoreSave", "default")], [("0-stateStoreSave/default", {"operatorId": "0", "storeName": "default"})]),
        (
            [metadata(1, "symmetricHashJoin", store) for store in ("left-keyToNumValues", "right-keyToNumValues")],
            [
                ("1-symmetricHashJoin/left", {"operatorId": "1", "joinSide": "left"}),
                ("1-symmetricHashJoin/right", {"operatorId": "1", "joinSide": "right"}),
            ],
        ),
        (
            [
                metadata(
                    0,
                    "transformWithStateInPandasExec",
                    "default",
                    '{"timeMode":"EventTime","stateVariables":[{"stateName":"total"},{"stateName":"$eventTimers_keyToTimestamp"}]}',
                )
            ],
            [
                ("0-transformWithStateInPandasExec/total", {"operatorId": "0", "stateVarName": "total"}),
                ("0-transformWithStateInPandasExec/timers", {"operatorId": "0", "readRegisteredTimers": "true"}),
            ],
        ),
        (
            [metadata(0, "transformWithStateExec", "default", '{"timeMode":"ProcessingTime","stateVariables":[{"stateName":"timers"}]}')],
            [
                ("0-transformWithStateExec/timers", {"operatorId": "0", "stateVarName": "timers"}),
                ("0-transformWithStateExec/timers_2", {"operatorId": "0", "readRegisteredTimers": "true"}),
            ],
        ),
    ],
    ids=["stateless", "aggregation", "join", "transformWithState", "a variable of the timers' name"],
)
def test_what_is_read_of_an_operator(rows: list[dict[str, Any]], parts: list[tuple[str, dict[str, str]]]) -> None:
    assert parts_of(rows) == [StatePart(folder, options) for folder, options in parts]


@pytest.mark.parametrize(
    ("names", "distinct"),
    [
        ([], []),
        (["sum", "count"], ["sum", "count"]),
        (["sum", "sum", "sum"], ["sum", "sum_2", "sum_3"]),
        (["sum", "sum", "sum_2", "SUM_2"], ["sum", "sum_3", "sum_2", "SUM_2_2"]),
        (["a", "A"], ["a", "A_2"]),
    ],
)
def test_no_two_columns_have_one_name(names: list[str], distinct: list[str]) -> None:
    assert distinct_names(names) == distinct


def two(first: DataType, second: DataType, names: tuple[str, str]) -> StructType:
    return StructType().add(names[0], first, nullable=False).add(names[1], second)


@pytest.mark.parametrize(
    "within",
    [
        lambda kind: kind,
        lambda kind: ArrayType(kind, containsNull=False),
        lambda kind: MapType(StringType(), kind, valueContainsNull=False),
        lambda kind: MapType(kind, IntegerType()),
        lambda kind: StructType().add("inner", kind, nullable=False),
    ],
    ids=["struct", "array", "map's value", "map's key", "struct in struct"],
)
def test_only_names_change_however_deep(within: Callable[[DataType], DataType]) -> None:
    twice, distinct = (two(LongType(), StringType(), names) for names in (("x", "x"), ("x", "x_2")))
    assert with_distinct_names(within(twice)) == within(distinct)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_buffers_of_one_name_are_exported_apart(warm: Warm, base: Path, tmp_path: Path) -> None:
    """Without a name of its own each of two sums would be written into the other's column."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    same, other = (F.col("id") % divisor for divisor in (2, 3))
    kinds: dict[str, tuple[list[Column], list[Column]]] = {
        "sums": ([], [F.sum("id"), F.sum(F.col("id") * 1000), F.avg("id")]),  # and without a key
        "keys": ([same.alias("a"), other.alias("b"), F.col("id").cast("string").alias("c")], [F.sum("id")]),
    }
    for name, (keys, sums) in kinds.items():
        totals = read(warm.session, tmp_path).groupBy(*keys).agg(*sums)
        started = totals.writeStream.queryName(name).outputMode("update").format("noop")
        started.option("checkpointLocation", str(tmp_path / name)).start().processAllAvailable()

    warm.drain(stateLossPolicy="Accept", stateExport__path=f"{base}/allowed/alike")
    total = sum(feed.ids)
    found = pq.read_table(f"{base}/allowed/alike/sums/0-stateStoreSave/default").to_pylist()
    buffers = [value for row in found for value in row["value"].values()]
    assert buffers == [total, total * 1000, float(total), len(feed.ids)]
    assert all("key" not in row for row in found)
    rows = warm.session.read.parquet(f"{base}/allowed/alike/keys/0-stateStoreSave/default").select("key.*", "value.*").collect()
    assert sum(row["sum"] for row in rows) == total
    assert all((row["_groupingexpression"], row["_groupingexpression_2"]) == (row["sum"] % 2, row["sum"] % 3) for row in rows)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_state_over_all_rows_is_exported_after_a_second_drain(warm: Warm, base: Path, tmp_path: Path) -> None:
    """The empty state that the second version began with has to have the partitions that Spark's reader goes by."""
    feed, sink = Feed(tmp_path / "input"), {"limited": "append", "total": "update"}

    def start() -> None:
        rows = read(warm.session, tmp_path)
        for name, limited in (("limited", rows.limit(5)), ("total", rows.agg(F.count("*").alias("rows")))):
            writer = limited.writeStream.queryName(name).outputMode(sink[name]).format("noop")
            writer.option("checkpointLocation", str(tmp_path / name)).start().processAllAvailable()

    feed.add(2)
    start()
    warm.drain(stateLossPolicy="Accept", checkpoint__policy="Reseed")
    warm.forget()
    before = len(feed.ids)
    feed.add(3)
    start()
    warm.drain(stateLossPolicy="Accept", stateExport__path=f"{base}/allowed/all-rows")
    (total,) = pq.read_table(f"{base}/allowed/all-rows/total/0-stateStoreSave/default").to_pylist()
    assert total["value"] == {"count": len(feed.ids) - before}
    (limited,) = (base / "allowed/all-rows/limited").glob("*/default")
    assert pq.read_table(limited).num_rows == 1


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "committed", [pytest.param(True, id="after a commit", marks=pytest.mark.soak), pytest.param(False, id="in the first batch")]
)
def test_state_that_parquet_cannot_hold_is_refused_before_anything_is_touched(
    warm: Warm, base: Path, tmp_path: Path, committed: bool
) -> None:
    Feed(tmp_path / "input").add(1)
    totals = read(warm.session, tmp_path).groupBy("id").agg(F.first(F.expr("make_interval(0, 0, 0, 1)")).alias("interval"))
    may_end = threading.Event()

    def write(batch: DataFrame, _: int) -> None:
        batch.collect()
        may_end.wait(60)

    writer = totals.select("id", F.isnull("interval")).writeStream.queryName("intervals").outputMode("update").foreachBatch(write)
    query = writer.option("checkpointLocation", str(tmp_path / "intervals")).start()
    if committed:
        may_end.set()
        query.processAllAvailable()
    else:
        eventually((tmp_path / "intervals/offsets/0").is_file, "the first batch to be planned")
    with warm.requested(stateLossPolicy="Accept", stateExport__path=f"{base}/allowed/intervals") as drain:
        if not committed:
            warm.drains.reaches(drain, "Stopping")
            may_end.set()
        refused = warm.drains.reaches(drain, "Rejected")
    assert refused["reason"] == "UnsupportedOption"
    assert "stateExport.path" in refused["message"]
    assert "INTERVAL" in refused["message"]
    assert query.isActive
    assert not list((base / "allowed").glob("intervals*"))
    warm.drain(stateLossPolicy="Accept")


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["Drain", pytest.param("Stop", marks=pytest.mark.soak)])
def test_state_is_exported_as_it_was_before_the_flush(warm: Warm, base: Path, tmp_path: Path, mode: str) -> None:
    feed = Feed(tmp_path / "input")
    feed.add(3)
    counted(read(warm.session, tmp_path)).writeStream.queryName("counts").option(
        "checkpointLocation", str(tmp_path / "counts")
    ).foreachBatch(to_files(tmp_path / "out")).start().processAllAvailable()
    left = read(warm.session, tmp_path).withWatermark("at", "1 minute")
    right = left.select(F.col("id").alias("other"), F.col("at").alias("later"))
    left.join(right, F.expr("id = other AND later BETWEEN at AND at + INTERVAL 1 MINUTE")).writeStream.queryName("joined").format(
        "noop"
    ).option("checkpointLocation", str(tmp_path / "joined")).start().processAllAvailable()
    emitted = ids_in(tmp_path / "out")

    drain = warm.drain(mode, stateExport__path=f"{base}/allowed/of-{mode}")
    folders = {query["name"]: query["stateExport"] for query in drain["queries"]}
    assert folders == {name: f"file:{base}/allowed/of-{mode}/{name}" for name in ("counts", "joined")}
    state = warm.session.read.parquet(f"{folders['counts']}/0-stateStoreSave/default")
    assert {"key", "value"} <= set(state.columns)
    for side in ("left", "right"):
        assert warm.session.read.parquet(f"{folders['joined']}/0-symmetricHashJoin/{side}").count() > 0
    assert (ids_in(tmp_path / "out") == exactly(feed.ids)) is (mode == "Drain")
    assert emitted.total() + sum(item["value"]["count"] for item in state.collect()) == len(feed.ids)


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["Drain", pytest.param("Stop", marks=pytest.mark.soak)])
def test_state_that_spark_cannot_read_is_not_asked_of_it(warm: Warm, base: Path, tmp_path: Path, mode: str) -> None:
    """Its reader encodes the checkpoint's path twice: it finds none where anything in it is to be encoded."""
    Feed(tmp_path / "input").add(1)
    counted(read(warm.session, tmp_path)).writeStream.queryName("counts").option(
        "checkpointLocation", str(tmp_path / "with space")
    ).foreachBatch(to_files(tmp_path / "out")).start().processAllAvailable()
    reason, message = warm.refused(mode, stateExport__path=f"{base}/allowed/not-{mode}")
    assert reason == "UnsupportedOption"
    assert "stateExport.path" in message
    assert f"'file:{tmp_path}/with space'" in message
    warm.drain(mode)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_example_begins_with_the_exported_balances(warm: Warm, base: Path) -> None:
    folder = base / "allowed/balances"
    truth: Counter[str] = Counter()

    def pay(number: int, *payments: tuple[str, int]) -> None:
        (folder / "payments").mkdir(parents=True, exist_ok=True)
        (folder / f"payments/{number}.json").write_text("\n".join(json.dumps({"account": a, "amount": n}) for a, n in payments))
        for account, amount in payments:
            truth[account] += amount

    pay(0, ("ann", 5), ("bob", 7), ("ann", 10))
    v1.start(warm.session, str(folder)).processAllAvailable()
    warm.drain(stateLossPolicy="Accept", stateExport__path=f"{folder}/state")
    with pytest.raises(EmptyStateError, match="Spark applies in batch 0 only"):  # and says what to do:
        _start_v2(warm, folder)
    shutil.rmtree(folder / "state")
    _take_back(warm, folder / "checkpoint")
    warm.forget()
    v1.start(warm.session, str(folder)).processAllAvailable()
    warm.drain(
        stateLossPolicy="Accept",
        stateExport__path=f"{folder}/state",
        checkpoint__policy="Reseed",
        checkpoint__acceptBatchIdRestart="true",
    )

    pay(1, ("ann", 1), ("cid", 3))
    query = _start_v2(warm, folder)
    query.processAllAvailable()
    pay(2, ("bob", 2))
    query.processAllAvailable()
    drain = warm.drain(stateLossPolicy="Accept", stateExport__path=f"{base}/allowed/again")

    newest: dict[str, int] = {}
    for batch in sorted((folder / "balances").iterdir()):
        for path in batch.glob("*.json"):
            newest.update((item["account"], item["balance"]) for item in map(json.loads, path.read_text().splitlines()))
    assert newest == dict(truth)
    (variable,) = Path(drain["queries"][0]["stateExport"].removeprefix("file:")).glob("0-*/account")
    exported = warm.session.read.parquet(str(variable)).select("key.account", "value.balance", "value.payments").collect()
    assert {row.account: (row.balance, row.payments) for row in exported} == {"ann": (16, 1), "bob": (9, 1), "cid": (3, 1)}


def _start_v2(warm: Warm, folder: Path) -> StreamingQuery:
    warm.session.conf.set(PROVIDER, v2.ROCKSDB)
    try:
        return v2.start(warm.session, str(folder))
    finally:
        warm.session.conf.unset(PROVIDER)


def _take_back(warm: Warm, checkpoint: Path) -> None:
    files = CheckpointFiles(SparkInternals(warm.session), str(checkpoint))
    restore(files, check_restorable(files, read_journal(files), discard_newer=False, accept_reuse=True))
