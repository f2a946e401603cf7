"""Iceberg tables: written by name and by path, and read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.harness import Restarter
from tests.sinks.bench import TRUTH, Case, bench, killed_between_commits, read_on, sums_in, until_drained

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.xdist_group("iceberg")]


@pytest.fixture(scope="module")
def iceberg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarter]:
    with bench("iceberg", tmp_path_factory.mktemp("iceberg") / "log") as restarter:
        yield restarter


@pytest.mark.parametrize(
    ("into", "flush"),
    [
        pytest.param(into, flush, marks=[] if (into, flush) == ("counts", "WorkCopy") else pytest.mark.soak)
        for into in ("name", "lake.db.counts", "db.counts", "counts")
        for flush in ("Auto", "WorkCopy")
    ],
)
def test_append(into: str, flush: str, iceberg: Restarter, source: Path, tmp_path: Path) -> None:
    """A name means what it meant at the start, also after the application has turned to another catalog."""
    case = Case("iceberg", into)
    until_drained(iceberg, case, source, tmp_path, flush=flush)
    read_on(iceberg, case, source, tmp_path)
    assert sums_in(case, tmp_path) == TRUTH


@pytest.mark.soak
@pytest.mark.parametrize("how", ["Drain-Auto", "Drain-WorkCopy", "CatchUp-Auto", "CatchUp-WorkCopy"])
def test_source(how: str, iceberg: Restarter, source: Path, tmp_path: Path) -> None:
    mode, flush = how.split("-")
    case = Case("iceberg", "lake.db.counts", source="iceberg")
    report = until_drained(iceberg, case, source, tmp_path, mode=mode, flush=flush)
    assert list(report["queries"][0]["endOffsets"]) == ["SparkMicroBatchStream[lake.db.events]"]
    if mode == "CatchUp":
        assert sums_in(case, tmp_path) == TRUTH
    read_on(iceberg, case, source, tmp_path)
    assert sums_in(case, tmp_path) == TRUTH


@pytest.mark.soak
@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_killed_between_the_commits(flush: str, iceberg: Restarter, source: Path, tmp_path: Path) -> None:
    case, base = Case("iceberg", "lake.db.counts"), tmp_path / "killed"
    killed_between_commits(case, flush, "lake/db/counts/metadata/v*.metadata.json", source, base)
    finished = iceberg.run("agent", "v1", source, base, "finish", app=case.app)
    assert finished["outcome"] == "ran", finished["detail"]
    read_on(iceberg, case, source, base)
    assert sums_in(case, base) == TRUTH
