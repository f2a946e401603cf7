"""Hudi tables, which leave out every batch whose id they know, whatever query it is of."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ledger.harness import EVENTS, Restarter
from tests.sinks.bench import TRUTH, Case, bench, killed_between_commits, read_on, sums_in, until_drained

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.xdist_group("hudi")]


def written(operation: str, rows: str = "windows") -> Case:
    return Case("hudi", rows=rows, writeOptions={"hoodie.datasource.write.operation": operation})


@pytest.fixture(scope="module")
def hudi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarter]:
    with bench("hudi", tmp_path_factory.mktemp("hudi") / "log") as restarter:
        yield restarter


@pytest.mark.soak
def test_ids_that_start_again_lose_their_rows(hudi: Restarter, source: Path, tmp_path: Path) -> None:
    """Without any drain: this is why batch ids go on."""
    files, case = sorted(source.iterdir()), written("insert", "records")
    for version, part in (("v1", files[:4]), ("v2", files[4:])):
        folder = tmp_path / version
        folder.mkdir()
        for file in part:
            shutil.copy2(file, folder)
        ran = hudi.run("plain", version, folder, tmp_path, "consume", app=case.app)
        assert ran["outcome"] == "ran", ran["detail"]
        assert sums_in(case, tmp_path).count == EVENTS // 2
        shutil.rmtree(tmp_path / "checkpoints")


@pytest.mark.parametrize(
    ("operation", "flush"),
    [
        pytest.param(operation, flush, marks=[] if (operation, flush) == ("upsert", "Auto") else pytest.mark.soak)
        for operation in ("insert", "upsert")
        for flush in ("Auto", "WorkCopy")
    ],
)
def test_an_incompatible_version_reads_on(operation: str, flush: str, hudi: Restarter, source: Path, tmp_path: Path) -> None:
    case = written(operation)
    until_drained(hudi, case, source, tmp_path, flush=flush)
    read_on(hudi, case, source, tmp_path)
    assert sums_in(case, tmp_path) == TRUTH


@pytest.mark.soak
@pytest.mark.parametrize(("key", "exact"), [("nothing", False), ("generation", True)])
def test_an_upsert_by_window_replaces_the_part_before_the_cut(key: str, exact: bool, hudi: Restarter, source: Path, tmp_path: Path) -> None:
    """Unless the record key says which part it is, as the page of sinks asks for."""
    case, files, folder = replace(written("upsert"), key=key), sorted(source.iterdir()), tmp_path / "input"
    folder.mkdir()
    for file in files[:3]:  # the fourth one ends with a window
        shutil.copy2(file, folder)
    until_drained(hudi, case, folder, tmp_path)
    for file in files[3:]:
        shutil.copy2(file, folder)
    read_on(hudi, case, folder, tmp_path, "v1b")
    assert (sums_in(case, tmp_path) == TRUTH) is exact


@pytest.mark.soak
@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_continue(operation: str, hudi: Restarter, source: Path, tmp_path: Path) -> None:
    case = written(operation)
    until_drained(hudi, case, source, tmp_path, options=["checkpoint.policy=Continue"])
    read_on(hudi, case, source, tmp_path, "v1b")
    assert sums_in(case, tmp_path) == TRUTH


@pytest.mark.soak
@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_killed_between_the_commits(flush: str, hudi: Restarter, source: Path, tmp_path: Path) -> None:
    case, base = written("upsert"), tmp_path / "killed"
    killed_between_commits(case, flush, "table/.hoodie/timeline/*.commit", source, base, "checkpoint.policy=Continue")
    finished = hudi.run("agent", "v1", source, base, "finish", app=case.app)
    assert finished["outcome"] == "ran", finished["detail"]
    read_on(hudi, case, source, base, "v1b")
    assert sums_in(case, base) == TRUTH
