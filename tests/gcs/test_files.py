"""One file of a checkpoint in Google Cloud Storage: it is there as a whole, and who writes it at the same time as another is told."""

from __future__ import annotations

import time

import pytest
from pyspark.sql import SparkSession
from spark_drain_agent.checkpoint.files import CheckpointFiles, CheckpointLeasedError
from spark_drain_agent.checkpoint.journal import JournalStep, read_journal, write_journal
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.agent.checkpoint.test_steps import JOURNAL
from tests.support.lease_race import race
from tests.support.s3_proxy import Fault, S3Proxy

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def files(spark: SparkSession, bucket: str) -> CheckpointFiles:
    return CheckpointFiles(SparkInternals(spark), bucket)


@pytest.mark.parametrize("status", [403, 0])
def test_a_write_that_the_store_refuses_is_an_error(status: int, files: CheckpointFiles, gcs: S3Proxy) -> None:
    files.write("metadata", "before")
    gcs.fault = Fault("PUT", "metadata", status=status)
    with pytest.raises(JavaError):
        files.write("metadata", "after")
    gcs.fault = None
    assert files.read("metadata") == "before"
    files.write("metadata", "after")
    assert files.read("metadata") == "after"


def test_a_file_is_created_once(files: CheckpointFiles, gcs: S3Proxy) -> None:
    assert files.compares
    assert files.write_if("_drain/lease", "mine", None)
    assert not files.write_if("_drain/lease", "another's", None)
    assert files.read("_drain/lease") == "mine"
    gcs.fault = Fault("PUT", "lease", status=403)
    with pytest.raises(JavaError, match="403"):
        files.write_if("_drain/lease", "another's", "mine")


@pytest.mark.parametrize("before", [None, "void"])
def test_who_writes_last_of_those_that_saw_the_same_has_not_written(before: str | None, files: CheckpointFiles, gcs: S3Proxy) -> None:
    """The other one writes when the stream was opened, and its object is about to be made."""
    if before is not None:
        files.write("_drain/lease", before)

    def overtake() -> None:
        assert files.write_if("_drain/lease", "another's", before)

    gcs.fault = Fault("PUT", "lease", times=1, carried_out=False, act=overtake, passes=True)
    assert not files.write_if("_drain/lease", "mine", before)
    assert files.read("_drain/lease") == "another's"


@pytest.mark.parametrize("drained_before", [False, True])
def test_a_journal_that_comes_late_takes_the_place_of_no_newer_one(drained_before: bool, files: CheckpointFiles, gcs: S3Proxy) -> None:
    done = JOURNAL.at(JournalStep.DONE)
    if drained_before:
        write_journal(files, JOURNAL.at(JournalStep.UNDONE))

    def overtake() -> None:
        write_journal(files.elsewhere(files.root), done)

    gcs.fault = Fault("PUT", "journal", times=1, act=overtake, passes=True)
    with pytest.raises(CheckpointLeasedError, match="another driver has written it meanwhile"):
        write_journal(files, JOURNAL)
    assert read_journal(files) == done


def test_a_file_is_replaced_by_whoever_has_seen_it_last(files: CheckpointFiles) -> None:
    files.write("_drain/lease", "void")
    assert files.write_if("_drain/lease", "first", "void")
    assert not files.write_if("_drain/lease", "second", "void")
    assert files.read("_drain/lease") == "first"


def test_an_interrupted_move_goes_on(files: CheckpointFiles, gcs: S3Proxy) -> None:
    names = [f"{partition}/{version}.delta" for partition in range(3) for version in range(4)]
    for name in names:
        files.write(f"state/{name}", name)
    gcs.fault = Fault("COPY", "archive/state/[12]/2", status=403)
    with pytest.raises((*JavaError, OSError)):
        files.merge("state", "archive/state")
    gcs.fault = None
    there = {*files.below("state"), *(name.removeprefix("archive/") for name in files.below("archive/state"))}
    assert there == {f"state/{name}" for name in names}
    files.merge("state", "archive/state")
    assert files.below("archive/state") == sorted(f"archive/state/{name}" for name in names)
    assert not files.is_folder("state")
    assert all(files.read(f"archive/state/{name}") == name for name in names)


def test_what_was_copied_and_not_deleted_is_moved_once_more(files: CheckpointFiles) -> None:
    files.write("state/0/1.delta", "whole")
    files.write("archive/state/0/1.delta", "whole")
    files.merge("state", "archive/state", ["0/1.delta"])
    assert (files.below("state"), files.read("archive/state/0/1.delta")) == ([], "whole")


def test_folders_are_removed_with_all_that_is_in_them(files: CheckpointFiles) -> None:
    for number in range(40):
        files.write(f"state/0/{number % 3}/{number}.delta", "")
    files.empty("state")
    files.empty("state")
    assert files.below("state") == files.names("state") == []


def test_archives_are_told_apart_by_their_age(files: CheckpointFiles) -> None:
    for name in ("b", "c", "a"):
        files.write(f"_drain/{name}/metadata", "")
        time.sleep(0.01)
    files.write("_drain/README", "of somebody else")
    assert files.folders_by_age("_drain") == ["b", "c", "a"]


@pytest.mark.parametrize("left", [None, '{"run": "gone", "seconds": 1}'])
def test_of_drivers_that_look_for_a_lease_together_one_has_it(left: str | None, spark: SparkSession, bucket: str) -> None:
    internals = SparkInternals(spark)
    assert race(lambda folder: CheckpointFiles(internals, f"{bucket}/{folder}"), left) == [1] * 5
