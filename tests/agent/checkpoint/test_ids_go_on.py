"""Batch ids that go on where a flush was given up, and where a drain is to be taken back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spark_drain_agent.checkpoint.discard import PendingBatchTakenError, discard_pending
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, read_journal, write_journal
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.checkpoint.restore import RestoreError, check_restorable, restore
from spark_drain_agent.checkpoint.sink_log import SinkLogError, prepare_sink_log

from tests.agent.checkpoint.test_steps import COMMIT, JOURNAL, OFFSETS
from tests.agent.folder import files_in

GOES_ON = replace(JOURNAL, first_batch_id=9, batch_ids="REMEMBERED", flush_may_be_taken=True)
"""Of a drain after batch 7, whose flush is batch 8."""


@pytest.mark.parametrize(
    ("taken", "first"),
    [
        (["6", "7"], 8),
        (["6", "7", "8"], 9),
        (["7.compact", "8.compact"], 9),
        ([], 8),
    ],
)
def test_a_given_up_flush_leaves_no_gap_in_a_file_sinks_log(tmp_path: Path, taken: list[str], first: int) -> None:
    """Whether the sink has taken the flush batch only its log knows."""
    files = files_in(tmp_path / "checkpoint")
    for name in taken:
        files_in(tmp_path / "out").write(f"_spark_metadata/{name}", "v1")
    assert _given_up(files, replace(GOES_ON, sink_folder=f"file:{tmp_path / 'out'}")) == first


@pytest.mark.parametrize(("first_batch_id", "first"), [(9, 9), (0, 0)])
def test_a_given_up_flush_may_have_reached_any_other_sink(tmp_path: Path, first_batch_id: int, first: int) -> None:
    assert _given_up(files_in(tmp_path), replace(GOES_ON, first_batch_id=first_batch_id)) == first


@pytest.mark.parametrize("point", ["logs-cleared", "seeded"])
def test_a_flush_whose_giving_up_was_interrupted_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """The command may be repeated, as its page says."""

    class KilledError(Exception):
        pass

    def kill(milestone: str) -> None:
        if milestone == point:
            raise KilledError

    files = files_in(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("spark_drain_agent.checkpoint.seed.reached", kill)
        with pytest.raises(KilledError):
            _given_up(files, GOES_ON)
    ended = discard_pending(files, read_journal(files))
    assert (ended.step, ended.first_batch_id) == (JournalStep.DONE, 9)
    assert Checkpoint(files).newest_commit == 8


def _given_up(files: CheckpointFiles, journal: Journal) -> int:
    """Give the flush up, and return the id of the batch that comes next."""
    work = Checkpoint(files, journal.work)
    for number in (6, 7):
        files.write(work.name(f"offsets/{number}"), OFFSETS)
        files.write(work.name(f"commits/{number}"), COMMIT)
    files.write(work.name("offsets/8"), OFFSETS)
    files.write("metadata", "FENCED_BY_SPARK_DRAIN")
    ended = discard_pending(files, write_journal(files, journal.at(JournalStep.FLUSH_LOGGED)))
    seeded = Checkpoint(files)
    assert seeded.newest_offsets == seeded.newest_commit == ended.first_batch_id - 1
    return ended.first_batch_id


RESTARTED = {"first_batch_id": 0, "flush_may_be_taken": True}
"""Of a generation whose batch ids start again, under another query id."""
NOT_TAKEN = {"flushes": False, "flush_may_be_taken": False}


@pytest.mark.parametrize(
    ("sink", "changes", "newest", "refused"),
    [
        ("REMEMBERED", {}, 8, "remembers batch ids"),
        ("REMEMBERED accepted", {}, 8, "remembers batch ids"),
        ("REMEMBERED", {"first_batch_id": 8} | NOT_TAKEN, 7, ""),
        ("REMEMBERED", {"first_batch_id": 8} | NOT_TAKEN, 8, "remembers batch ids .*start the version that ran there last"),
        ("UNKNOWN", {}, 8, "may remember batch ids .give --accept-batch-id-reuse"),
        ("UNKNOWN accepted", {}, 8, ""),
        ("UNKNOWN", RESTARTED, -1, "may remember batch ids"),
        ("UNKNOWN", {"first_batch_id": 8} | NOT_TAKEN, 7, ""),
        ("UNKNOWN", {"first_batch_id": 8} | NOT_TAKEN, 8, "may remember batch ids"),
        ("BY_QUERY", RESTARTED, -1, ""),
        ("BY_QUERY", RESTARTED, 0, "has run 1 batch "),
        ("NONE", {}, 8, ""),
        ("NONE", {}, 10, "has run 2 batches"),
        ("NONE", RESTARTED, -1, ""),
        ("NONE", RESTARTED, 0, "has run 1 batch "),
        ("NONE", {"checkpoint_policy": "Keep"}, 8, "can be undone: start the next version on another checkpointLocation"),
        ("NONE", {"checkpoint_policy": "Continue"}, 8, "can be undone: start the next version on the checkpoint as it is"),
    ],
)
def test_what_may_be_taken_back(tmp_path: Path, sink: str, changes: dict[str, Any], newest: int, refused: str) -> None:
    """Not what a sink has taken that remembers it: the old version's next batch would be skipped there."""
    batch_ids, _, accepted = sink.partition(" ")
    files, done = files_in(tmp_path), replace(GOES_ON, batch_ids=batch_ids, step=JournalStep.DONE, **changes)
    files.write(f"{done.work}/metadata", done.metadata)
    files.write(f"offsets/{newest}", OFFSETS)
    if not refused:
        assert check_restorable(files, done, discard_newer=False, accept_reuse=bool(accepted)) == done
        return
    with pytest.raises(RestoreError, match=refused):
        check_restorable(files, done, discard_newer=False, accept_reuse=bool(accepted))


@pytest.mark.parametrize(("newest", "discarded"), [(-1, -1), (3, 3)])
def test_batches_that_are_discarded_leave_their_ids_taken(tmp_path: Path, newest: int, discarded: int) -> None:
    """Nobody knows where the version wrote them to: a sink that skips ids it has seen would pass over the mended version's."""
    files, done = files_in(tmp_path), replace(GOES_ON, batch_ids="NONE", step=JournalStep.DONE, first_batch_id=0)
    for name in ("metadata", "offsets/7", "commits/7"):
        files.write(f"{done.work}/{name}", done.metadata if name == "metadata" else OFFSETS)
    files.write("metadata", done.metadata)
    files.write(f"offsets/{newest}", OFFSETS)
    restored = restore(files, check_restorable(files, done, discard_newer=True, accept_reuse=False))
    assert restored.discarded_ids == discarded
    assert restored.ids_are_remembered == (discarded >= 0)


@pytest.mark.parametrize(("batch_ids", "taken", "another"), [("BY_QUERY", True, True), ("BY_QUERY", False, False), ("NONE", True, False)])
def test_a_query_id_that_has_seen_the_flush_is_given_up(tmp_path: Path, batch_ids: str, taken: bool, another: bool) -> None:
    """Delta and Iceberg pass over what comes under a query id and batch id that they have."""
    files, done = files_in(tmp_path), replace(JOURNAL, step=JournalStep.DONE, batch_ids=batch_ids, flush_may_be_taken=taken)
    files.write(f"{done.work}/metadata", done.metadata)
    restore(files, done)
    metadata = Checkpoint(files).metadata
    assert metadata is not None
    assert (json.loads(metadata)["id"] != json.loads(done.metadata)["id"]) is another


@pytest.mark.parametrize("policy", ["Continue", "Keep"])
@pytest.mark.parametrize(
    ("sink", "changes", "refused"),
    [
        ("REMEMBERED accepted", {}, "remembers batch ids"),
        ("REMEMBERED", {"flush_may_be_taken": False}, ""),
        ("REMEMBERED", {"step": JournalStep.PREPARED}, ""),
        ("UNKNOWN", {}, "may remember batch ids .give --accept-batch-id-reuse"),
        ("UNKNOWN accepted", {}, ""),
        ("BY_QUERY", {}, ""),
        ("NONE", {}, ""),
    ],
)
def test_a_flush_is_undone_only_where_the_sink_takes_its_id_again(
    tmp_path: Path, policy: str, sink: str, changes: dict[str, Any], refused: str
) -> None:
    files, (batch_ids, _, accepted) = files_in(tmp_path), sink.partition(" ")
    pending = replace(JOURNAL, checkpoint_policy=policy, step=JournalStep.FLUSH_LOGGED, batch_ids=batch_ids, flush_may_be_taken=True)
    pending = write_journal(files, replace(pending, **changes))
    files.write("metadata", "FENCED_BY_SPARK_DRAIN")
    files.write("offsets/7", OFFSETS)
    files.write("commits/7", COMMIT)
    if refused:
        with pytest.raises(PendingBatchTakenError, match=refused):
            discard_pending(files, pending, accept_reuse=bool(accepted))
        assert Checkpoint(files).metadata == "FENCED_BY_SPARK_DRAIN"
        return
    assert discard_pending(files, pending, accept_reuse=bool(accepted)).step is JournalStep.UNDONE
    same_query = Checkpoint(files).metadata == pending.metadata
    assert same_query is (batch_ids != "BY_QUERY")


@pytest.mark.parametrize(
    ("names", "first", "planned", "refused"),
    [
        (["5.compact", "6"], 0, False, "has batch 6 already"),
        (["0"], 0, False, "has batch 0 already"),
        (["0"], 0, True, ""),
        (["8.compact", "9"], 9, False, "has batch 9 already"),
        (["8.compact", "9"], 9, True, ""),
        (["8.compact"], 9, False, ""),
        ([], 0, False, ""),
    ],
)
def test_a_file_sink_passes_over_no_batch_of_the_next_version(
    tmp_path: Path, names: list[str], first: int, planned: bool, refused: str
) -> None:
    """Somebody may have written to the folder before, without a drain in between that would know."""
    folder = files_in(tmp_path)
    for name in names:
        folder.write(f"_spark_metadata/{name}", "v1")
    if not refused:
        prepare_sink_log(folder, first, 3, planned=planned)
        return
    with pytest.raises(SinkLogError, match=refused):
        prepare_sink_log(folder, first, 3, planned=planned)
    assert set(folder.names("_spark_metadata")) == set(names)
