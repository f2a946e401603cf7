"""An undo that is stopped at any change of a file: what was not begun is repeated, and what Spark has run since stays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from spark_drain_agent.checkpoint.discard import NothingPendingError, discard_pending
from spark_drain_agent.checkpoint.fence import fence, is_fence, return_state
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.flush import FlushError, copy_to_work, flush, log_flush
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, read_journal, write_journal
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.checkpoint.restore import check_restorable, restore
from spark_drain_agent.checkpoint.seed import lift_fence, seed
from spark_drain_agent.checkpoint.undo import undo

from tests.agent.checkpoint.test_steps import COMMIT, JOURNAL, OFFSETS, checkpoint
from tests.agent.folder import files_in, killed_after

CONTINUED = dataclasses.replace(JOURNAL, checkpoint_policy="Continue", batch_ids="REMEMBERED", flush_may_be_taken=False)


def pending(files: CheckpointFiles, journal: Journal) -> Checkpoint:
    """Return a checkpoint whose flush is planned and not committed."""
    found = checkpoint(files, 7, 7)
    fence(found.files, write_journal(found.files, journal))
    log_flush(found.files, journal, copy_to_work(found.files, journal))
    return found


def drained(files: CheckpointFiles) -> Checkpoint:
    """Return one that was drained with an archive."""
    found = pending(files, JOURNAL)
    Checkpoint(found.files, JOURNAL.work).write_commit(8, 1500)
    lift_fence(found.files, seed(found.files, JOURNAL.at(JournalStep.FLUSHED)))
    return found


def give_up(files: CheckpointFiles) -> None:
    discard_pending(files, read_journal(files))


def go_back(files: CheckpointFiles) -> None:
    restore(files, check_restorable(files, read_journal(files), discard_newer=False, accept_reuse=True))


@pytest.mark.parametrize("objects", [False, True], ids=["folder", "bucket"])
@pytest.mark.parametrize(
    ("make", "action", "same_query"),
    [
        (lambda files: pending(files, CONTINUED), give_up, True),
        (lambda files: pending(files, dataclasses.replace(CONTINUED, batch_ids="BY_QUERY", flush_may_be_taken=True)), give_up, False),
        (drained, go_back, True),
    ],
    ids=["recover", "recover, and the table has the flush", "resume"],
)
def test_an_undo_that_is_killed_anywhere(
    make: Callable[[CheckpointFiles], Checkpoint],
    action: Callable[[CheckpointFiles], None],
    same_query: bool,
    objects: bool,
    tmp_path: Path,
) -> None:
    changes, unfenced = 0, 0
    while True:
        live = make(files_in(tmp_path / str(changes), objects=objects))
        files = live.files
        with killed_after(changes, files) as killed:
            action(files)
        if not killed:
            break
        journal = read_journal(files)
        assert journal is not None
        ran_on = not is_fence(live.metadata) and journal.being_undone and changes > 1
        if ran_on:  # the next batch of any Spark, with its state
            unfenced += 1
            files.write("offsets/8", OFFSETS)
            files.write("commits/8", COMMIT)
            files.write("state/0/0/9.delta", "state")
        action(files)
        undone = read_journal(files)
        assert undone is not None
        assert undone.step is JournalStep.UNDONE, changes
        assert (live.metadata == JOURNAL.metadata) is same_query
        assert (live.newest_offsets, live.newest_commit) == ((8, 8) if ran_on else (7, 7)), changes
        assert files.read("state/0/0/1.delta") == "state"
        assert files.is_file("state/0/0/9.delta") is ran_on
        assert not files.is_folder(JOURNAL.work)
        changes += 1
    assert unfenced > 1
    assert changes > 4


def test_a_flush_that_was_given_up_is_not_planned_anew(tmp_path: Path) -> None:
    """Without its entry Spark would plan a batch of its own in the work copy, and read on."""
    files = pending(files_in(tmp_path), JOURNAL).files
    with killed_after(1, files) as killed:
        give_up(files)
    assert killed
    journal = read_journal(files)
    assert journal is not None
    assert journal.step is JournalStep.FLUSH_LOGGED

    def launched(checkpoint: str) -> None:
        raise AssertionError(checkpoint)

    with pytest.raises(FlushError, match="recover --discard-pending"):
        flush(files, journal, launched)  # type: ignore[arg-type]
    give_up(files)
    with pytest.raises(NothingPendingError):
        give_up(files)


@pytest.mark.parametrize("committed", [False, True])
def test_a_batch_that_the_query_has_planned_in_the_place_of_the_flush_stays(committed: bool, tmp_path: Path) -> None:
    live = checkpoint(files_in(tmp_path), 7, 7)
    fence(live.files, write_journal(live.files, CONTINUED))
    live.files.write("offsets/8", OFFSETS)
    if committed:
        live.files.write("commits/8", COMMIT)
    with pytest.raises(NothingPendingError, match="no batch is pending"):
        give_up(live.files)
    assert live.metadata == JOURNAL.metadata
    undo(live.files, CONTINUED)
    assert (live.newest_offsets, live.newest_commit) == (8, 8 if committed else 7)


def test_state_that_was_moved_in_part_comes_back_where_renames_are_atomic_now(tmp_path: Path) -> None:
    """A restart may have another word about the store than the driver that was killed."""
    found = checkpoint(files_in(tmp_path), 7, 7)
    moved, left = [f"state/0/0/{version}.delta" for version in (1, 2)], [f"state/0/0/{version}.delta" for version in (3, 4)]
    found.files.write_all({f"{JOURNAL.work}/{name}": name for name in moved} | {name: name for name in left})
    return_state(found.files, JOURNAL)
    assert [found.files.read(name) for name in (*moved, *left)] == [*moved, *left]
