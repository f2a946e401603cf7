"""Batch ids that go on where a flush was given up, and where a drain is to be taken back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from spark_drain_agent.checkpoint.discard import discard_pending
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, write_journal
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.checkpoint.restore import RestoreError, check_restorable

from tests.agent.checkpoint.test_steps import COMMIT, JOURNAL, OFFSETS
from tests.agent.folder import files_in

GOES_ON = replace(JOURNAL, first_batch_id=9, remembers_ids=True)
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


def _given_up(files: CheckpointFiles, journal: Journal) -> int:
    """Give the flush up, and return the id of the batch that comes next."""
    work = Checkpoint(files, journal.work)
    for number in (6, 7):
        files.write(work.name(f"offsets/{number}"), OFFSETS)
        files.write(work.name(f"commits/{number}"), COMMIT)
    files.write(work.name("offsets/8"), OFFSETS)
    for number in (7, 8):  # what was staged beside the flush
        files.write(f"{journal.staged}/offsets/{number}", OFFSETS)
    files.write("metadata", "FENCED_BY_SPARK_DRAIN")
    ended = discard_pending(files, write_journal(files, journal.at(JournalStep.FLUSH_LOGGED)))
    seeded = Checkpoint(files)
    assert seeded.newest_offsets == seeded.newest_commit == ended.first_batch_id - 1
    return ended.first_batch_id


@pytest.mark.parametrize(
    ("journal", "newest", "refused"),
    [
        (GOES_ON, 8, "remembers batch ids"),
        (replace(GOES_ON, first_batch_id=8, flushes=False), 7, ""),
        (replace(GOES_ON, first_batch_id=8, flushes=False), 8, "remembers batch ids"),
        (replace(GOES_ON, remembers_ids=False), 8, ""),
        (replace(GOES_ON, remembers_ids=False), 10, "has run 2 batches"),
        (replace(GOES_ON, remembers_ids=False, first_batch_id=0), -1, ""),
        (replace(GOES_ON, remembers_ids=False, first_batch_id=0), 0, "has run 1 batch "),
    ],
)
def test_what_may_be_taken_back(tmp_path: Path, journal: Journal, newest: int, refused: str) -> None:
    """Not what a sink has taken that remembers it: the old version's next batch would be skipped there."""
    files, done = files_in(tmp_path), journal.at(JournalStep.DONE)
    files.write(f"{journal.work}/metadata", journal.metadata)
    files.write(f"offsets/{newest}", OFFSETS)
    if not refused:
        assert check_restorable(files, done, discard_newer=False) == done
        return
    with pytest.raises(RestoreError, match=refused):
        check_restorable(files, done, discard_newer=False)
