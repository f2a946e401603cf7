"""Delta tables: written in every way that Delta knows, and read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import Table  # type: ignore[import-untyped]  # pyarrow ships no types

from tests.ledger.harness import Crash, Restarter
from tests.sinks.bench import TRUTH, Case, Sums, bench, killed_between_commits, read_on, spark_of, sums_in, until_drained
from tools.table_formats import RELEASES

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.xdist_group("delta")]

TABLES = ["path", "counts", "default.counts", "spark_catalog.default.counts"]


@pytest.fixture(scope="module")
def delta(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarter]:
    with bench("delta", tmp_path_factory.mktemp("delta") / "log") as restarter:
        yield restarter


@pytest.fixture(scope="module")
def table(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The input as a Delta table, each file in a version of its own."""
    folder = tmp_path_factory.mktemp("input") / "table"
    for file in sorted(source.iterdir()):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        write_deltalake(str(folder), Table.from_pylist([row | {"at": datetime.fromisoformat(row["at"])} for row in rows]), mode="append")
    return folder


@pytest.mark.parametrize(
    ("into", "flush"),
    [
        pytest.param(into, flush, marks=[] if (into, flush) == ("spark_catalog.default.counts", "WorkCopy") else pytest.mark.soak)
        for into in TABLES
        for flush in ("Auto", "WorkCopy")
    ],
)
def test_append(into: str, flush: str, delta: Restarter, source: Path, tmp_path: Path) -> None:
    case = Case("delta", into)
    until_drained(delta, case, source, tmp_path, flush=flush)
    read_on(delta, case, source, tmp_path)
    assert sums_in(case, tmp_path) == TRUTH


@pytest.mark.soak
def test_undone(delta: Restarter, source: Path, tmp_path: Path) -> None:
    """The table knows the flush's batch: what comes under its id again must not be passed over."""
    case = Case("delta")
    until_drained(delta, case, source, tmp_path)
    undone = delta.command("resume", str(tmp_path / "checkpoints" / "counts"), "--from", "archive")
    assert undone["outcome"] == "0", undone["detail"]
    read_on(delta, case, source, tmp_path, version="v1")
    assert sums_in(case, tmp_path) != TRUTH, "the flush emitted no incomplete window"
    assert sums_in(case, tmp_path, complete=True) == TRUTH


@pytest.mark.soak
@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_complete_mode(flush: str, delta: Restarter, source: Path, tmp_path: Path) -> None:
    """The table holds what one version has counted: what the first one had is there until the second one replaces it."""
    case = Case("delta", rows="totals", mode="complete")
    accept = ["stateLossPolicy=Accept"]
    until_drained(delta, case, source, tmp_path, flush=flush, options=accept)
    first = sums_in(case, tmp_path)
    read_on(delta, case, source, tmp_path, options=accept)
    assert first + sums_in(case, tmp_path) == TRUTH
    assert 0 < first.count < TRUTH.count


@pytest.mark.soak
@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
@pytest.mark.parametrize("rows", ["records", "windows"])
def test_foreach_batch_that_leaves_out_ids_that_the_table_knows(
    rows: str, flush: str, delta: Restarter, source: Path, tmp_path: Path
) -> None:
    case = Case("delta", "foreachBatch", rows)
    until_drained(delta, case, source, tmp_path, flush=flush)
    read_on(delta, case, source, tmp_path)
    assert sums_in(case, tmp_path) == TRUTH


@pytest.mark.soak
@pytest.mark.parametrize("how", ["Drain-Auto", "Drain-WorkCopy", "CatchUp-Auto", "CatchUp-WorkCopy"])
def test_source(how: str, delta: Restarter, table: Path, tmp_path: Path) -> None:
    mode, flush = how.split("-")
    case = Case("delta", source="delta")
    report = until_drained(delta, case, table, tmp_path, mode=mode, flush=flush)
    assert list(report["queries"][0]["endOffsets"]) == [f"DeltaSource[file:{table}]"]
    if mode == "CatchUp":
        assert sums_in(case, tmp_path) == TRUTH
    read_on(delta, case, table, tmp_path)
    assert sums_in(case, tmp_path) == TRUTH


@pytest.mark.soak
@pytest.mark.skipif("delta-3.3" not in RELEASES, reason="its Spark does not know this Python")
def test_source_of_the_delta_for_another_spark(table: Path, tmp_path: Path) -> None:
    with bench("delta-3.3", tmp_path / "log") as older:
        test_source("CatchUp-Auto", older, table, tmp_path)


@pytest.mark.parametrize("flush", [pytest.param("Auto", marks=pytest.mark.soak), "WorkCopy"])
def test_source_with_a_schema_log(flush: str, delta: Restarter, source: Path, tmp_path: Path) -> None:
    """Delta writes into it for which checkpoint it was made; a work copy is another folder."""
    case = Case("delta", source="delta", readOptions={"schemaTrackingLocation": "{base}/checkpoints/counts/_schemas"})
    until_drained(delta, case, source, tmp_path, flush=flush)
    read_on(delta, case, source, tmp_path)
    assert sums_in(case, tmp_path) == TRUTH


@pytest.mark.parametrize(
    ("into", "flush"),
    [
        pytest.param("path", "Auto"),
        pytest.param("path", "WorkCopy", marks=pytest.mark.soak),
        pytest.param("spark_catalog.default.counts", "Auto", marks=pytest.mark.soak),
        pytest.param("foreachBatch", "Auto", marks=pytest.mark.soak),
        pytest.param("foreachBatch", "WorkCopy", marks=pytest.mark.soak),
    ],
)
def test_killed_between_the_commits(into: str, flush: str, delta: Restarter, source: Path, tmp_path: Path) -> None:
    case, base = Case("delta", into), tmp_path / "killed"
    killed_between_commits(case, flush, "table/_delta_log/*.json", source, base)
    finished = delta.run("agent", "v1", source, base, "finish", app=case.app)
    assert finished["outcome"] == "ran", finished["detail"]
    read_on(delta, case, source, base)
    assert sums_in(case, base) == TRUTH


@pytest.mark.soak
def test_side_output_into_an_append_only_table_is_replaced_after_a_crash(delta: Restarter, source: Path, tmp_path: Path) -> None:
    """As the tables of a session may be by default; the folder belongs to the drain."""
    case = Case("delta", confs={"spark.databricks.delta.properties.defaults.appendOnly": "true"})
    policy, folder = "incompleteWindows.policy=SideOutput", "incompleteWindows.sideOutput.path={base}/side"
    options = (policy, folder, "incompleteWindows.sideOutput.format=delta")
    Crash("Auto", "side-output-written", options, case.app, spark_of("delta")).happen(source, tmp_path)
    finished = delta.run("agent", "v1", source, tmp_path, "finish", app=case.app)
    assert finished["outcome"] == "ran", finished["detail"]
    rows = DeltaTable(str(tmp_path / "side/counts")).to_pyarrow_table().to_pylist()
    read_on(delta, case, source, tmp_path)
    kept = Sums(*(sum(row[column] for row in rows) for column in ("n", "s", "q")))
    assert kept.count > 0
    assert kept + sums_in(case, tmp_path) == TRUTH


@pytest.mark.soak
def test_the_next_version_is_killed_between_the_commits_of_its_first_batch(delta: Restarter, source: Path, tmp_path: Path) -> None:
    """Delta passes over a batch that it has: its state is what the killed driver's tasks have written, and no other version runs it."""
    case, base = Case("delta", "path"), tmp_path
    drained = delta.run("agent", "v1", source, base, "cut", batches=3, app=case.app)
    assert drained["outcome"] == "ran", drained["detail"]
    Crash("Auto", "empty-state-made>table/_delta_log/*.json", (), case.app, spark_of("delta"), "v2").happen(source, base)
    other = delta.run("agent", "v1", source, base, "consume", app=case.app)
    assert other["outcome"] == "failed"
    assert "which the sink may have taken and would then pass over: start that version" in other["detail"]
    read_on(delta, case, source, base)
    assert sums_in(case, base) == TRUTH
