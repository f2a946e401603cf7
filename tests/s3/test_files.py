"""One file of a checkpoint in S3: one request writes it whole, and a lease is created only where there is none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession
from spark_drain_agent.checkpoint import lease
from spark_drain_agent.checkpoint.files import CheckpointFiles, CheckpointLeasedError
from spark_drain_agent.checkpoint.journal import JournalStep, read_journal, write_journal
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.agent.checkpoint.test_steps import JOURNAL
from tests.support.lease_race import Run, race
from tests.support.s3_proxy import Fault
from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def files(spark: SparkSession, bucket: str) -> CheckpointFiles:
    return CheckpointFiles(SparkInternals(spark), bucket)


def test_one_request_writes_a_file_whole(files: CheckpointFiles, s3: S3Server, folder: Path) -> None:
    for text in ("old", "new"):
        before = len(s3.proxy.requests)
        files.write("_drain/journal", text)
        asked = s3.proxy.requests[before:]  # among them may be others of Spark's maintenance thread, for the stores of earlier queries
        assert [request.kind for request in asked if folder.name in request.key] == ["PUT"]
        assert files.read("_drain/journal") == text


@pytest.mark.parametrize("status", [403, 0])
def test_a_write_that_the_store_refuses_is_an_error(status: int, files: CheckpointFiles, s3: S3Server) -> None:
    files.write("metadata", "before")
    s3.proxy.fault = Fault("PUT", "metadata", status=status)
    with pytest.raises(JavaError):
        files.write("metadata", "after")
    s3.proxy.fault = None
    assert files.read("metadata") == "before"


def test_a_file_that_is_replaced_once_its_stream_is_open_is_read_anew(files: CheckpointFiles, s3: S3Server) -> None:
    """As a heartbeat is while another driver looks at it: the connector asks for the object that it has found there before."""
    files.write("_drain/lease-heartbeat", "1")
    s3.proxy.fault = Fault("GET", "lease-heartbeat", times=1, act=lambda: files.write("_drain/lease-heartbeat", "2"), passes=True)
    assert files.read("_drain/lease-heartbeat") == "2"
    assert s3.proxy.fault.happened


def test_a_file_is_created_once(files: CheckpointFiles) -> None:
    assert files.compares
    assert files.write_if("_drain/lease", "mine", None)
    assert not files.write_if("_drain/lease", "another's", None)
    assert files.read("_drain/lease") == "mine"


def test_who_writes_at_the_same_time_as_another_has_not_written(files: CheckpointFiles, s3: S3Server) -> None:
    s3.proxy.fault = Fault("PUT", "lease", status=409)
    assert not files.write_if("_drain/lease", "mine", None)
    s3.proxy.fault = Fault("PUT", "lease", status=403)
    with pytest.raises(JavaError, match="AccessDenied"):
        files.write_if("_drain/lease", "mine", None)


def test_a_file_is_replaced_by_whoever_has_seen_it_last(files: CheckpointFiles) -> None:
    files.write("_drain/lease", "void")
    assert files.write_if("_drain/lease", "first", "void")
    assert not files.write_if("_drain/lease", "second", "void")
    assert files.read("_drain/lease") == "first"


@pytest.mark.parametrize("drained_before", [False, True])
def test_a_journal_that_comes_late_takes_the_place_of_no_newer_one(drained_before: bool, files: CheckpointFiles, s3: S3Server) -> None:
    """As one whose driver stood still, or was cut off, and another driver has finished the drain: its archive would be taken for a copy."""
    done = JOURNAL.at(JournalStep.DONE)
    if drained_before:
        write_journal(files, JOURNAL.at(JournalStep.UNDONE))

    def overtake() -> None:
        write_journal(files.elsewhere(files.root), done)

    s3.proxy.fault = Fault("PUT", "_drain/journal", times=1, act=overtake, passes=True)
    with pytest.raises(CheckpointLeasedError, match="another driver has written it meanwhile"):
        write_journal(files, JOURNAL)
    assert read_journal(files) == done


@pytest.mark.parametrize("drained_before", [False, True])
def test_a_journal_whose_answer_is_lost_is_written(drained_before: bool, files: CheckpointFiles, s3: S3Server) -> None:
    """The connector asks again, and the store says that the journal is no longer what it was."""
    if drained_before:
        write_journal(files, JOURNAL.at(JournalStep.DONE))
    s3.proxy.fault = Fault("PUT", "_drain/journal", times=1, carried_out=True)
    write_journal(files, JOURNAL)
    assert s3.proxy.fault.happened
    assert read_journal(files) == JOURNAL


def test_a_journal_that_the_store_does_not_take_for_a_moment_is_written(files: CheckpointFiles, s3: S3Server) -> None:
    """It may answer 409 to one of two requests that come together, also to the second try of the same."""
    s3.proxy.fault = Fault("PUT", "_drain/journal", times=1, status=409)
    write_journal(files, JOURNAL)
    assert s3.proxy.fault.happened
    assert read_journal(files) == JOURNAL


@pytest.mark.parametrize("tried_again", [True, False])
def test_what_a_driver_that_was_killed_has_tried_the_store_with_is_removed(
    tried_again: bool, files: CheckpointFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("_drain/probe", "left")
    if tried_again:
        monkeypatch.setattr(lease, "_comparing", set())
        assert lease.obstacle_to_leasing(files) == ""
    else:
        lease.acquire_lease(files, cast(SparkInternals, Run("one"))).release()
    assert files.names("_drain") == []


def test_an_interrupted_move_goes_on(files: CheckpointFiles, s3: S3Server, folder: Path) -> None:
    names = [f"{partition}/{version}.delta" for partition in range(3) for version in range(4)]
    for name in names:
        files.write(f"state/{name}", name)
    s3.proxy.fault = Fault("COPY", nth=5, status=403)
    with pytest.raises((*JavaError, OSError)):
        files.merge("state", "archive/state")
    s3.proxy.fault = None
    there = {*files.below("state"), *(name.removeprefix("archive/") for name in files.below("archive/state"))}
    assert there == {f"state/{name}" for name in names}
    files.merge("state", "archive/state")
    assert files.below("archive/state") == sorted(f"archive/state/{name}" for name in names)
    assert not files.is_folder("state")
    assert all((folder / "archive/state" / name).read_text() == name for name in names)


def test_many_objects_are_removed_by_few_requests(files: CheckpointFiles, s3: S3Server, folder: Path) -> None:
    for number in range(600):
        file = folder / f"state/0/{number % 3}/{number}.delta"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    before = len(s3.proxy.requests)
    files.empty("state")
    assert not any(path.is_file() for path in (folder / "state").rglob("*"))
    asked = [request for request in s3.proxy.requests[before:] if request.kind == "BULKDELETE" or folder.name in request.key]
    assert len(asked) < 5  # Spark maintains the stores of other queries meanwhile
    files.empty("state")
    assert files.below("state") == files.names("state") == []


def test_archives_are_told_apart_by_their_age(files: CheckpointFiles, folder: Path) -> None:
    """A store has no folders that could have a time."""
    for age, name in enumerate(("b", "c", "a")):
        for file in ("metadata", "offsets/7"):
            files.write(f"_drain/{name}/{file}", "")
            os.utime(folder / "_drain" / name / file, (1_700_000_000 + age,) * 2)
    files.write("_drain/README", "of somebody else")
    assert files.folders_by_age("_drain") == ["b", "c", "a"]


@pytest.mark.parametrize("left", [None, '{"run": "gone", "seconds": 1}'])
def test_of_drivers_that_look_for_a_lease_together_one_has_it(left: str | None, spark: SparkSession, bucket: str) -> None:
    internals = SparkInternals(spark)
    assert race(lambda folder: CheckpointFiles(internals, f"{bucket}/{folder}"), left) == [1] * 5
