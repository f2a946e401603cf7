"""Back to the generation before a drain: its archive is put back where it was (Beam's snapshot before a drain, restored)."""

from __future__ import annotations

from dataclasses import replace

from spark_drain_agent.checkpoint.archive import damage_of_archive
from spark_drain_agent.checkpoint.batch_ids import refuse_reuse
from spark_drain_agent.checkpoint.fence import fence
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import DRAIN_FOLDER, JOURNAL_FILE, Journal, JournalStep, write_journal
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.checkpoint.undo import finish_undo, undo
from spark_drain_agent.milestones import reached

__all__ = ["RestoreError", "check_restorable", "restore"]

_PARTS = ("offsets", "commits", "sources", "state")


class RestoreError(Exception):
    """The generation before a drain cannot be put back; the message names what is in the way, and the way out."""


def _without_journal(files: CheckpointFiles) -> str:
    archives = files.folders_by_age(DRAIN_FOLDER)
    if not archives:
        return f"{files.root} has no drain journal: this query was never drained"
    return (
        f"{files.uri(JOURNAL_FILE)} is missing, and {files.uri(f'{DRAIN_FOLDER}/{archives[-1]}')} is the archive of a drain: take the "
        "journal back from a backup, or from an earlier version of the object"
    )


def check_restorable(files: CheckpointFiles, journal: Journal | None, *, discard_newer: bool, accept_reuse: bool) -> Journal:
    """Return the journal of the drain whose archive can be put back.

    Parameters
    ----------
    files, journal
        The checkpoint and its journal.
    discard_newer
        Whether batches that ran after the drain may be given up.
    accept_reuse
        Whether the sink is said to take a batch with an id that it has seen.

    Raises
    ------
    RestoreError
        There is nothing to restore, or it would give up batches.
    """
    if journal is None:
        raise RestoreError(_without_journal(files))
    if journal.being_undone:
        return journal
    if journal.step is JournalStep.UNDONE:
        raise RestoreError(f"drain {journal.drain_id} of {files.root} is undone already: start the version that was drained")
    if journal.step is not JournalStep.DONE:
        raise RestoreError(
            f"drain {journal.drain_id} of {files.root} is not finished: start the application under the agent to finish it, or "
            "where its flush cannot succeed, give it up with `recover`"
        )
    if journal.checkpoint_policy == "Continue" and not journal.flushes:
        raise RestoreError(
            f"{files.root} had no state and no flush, so there is nothing to undo: start any version on the checkpoint as it is, it "
            "goes on after the last batch"
        )
    if journal.checkpoint_policy != "Reseed":
        way_out = "another checkpointLocation" if journal.checkpoint_policy == "Keep" else "the checkpoint as it is"
        raise RestoreError(
            f"drain {journal.drain_id} of {files.root} had checkpoint.policy {journal.checkpoint_policy!r}, and only a drain with "
            f"'Reseed' can be undone: start the next version on {way_out}"
        )
    if not files.is_file(f"{journal.work}/metadata"):
        raise RestoreError(f"{files.uri(journal.work)}, the archive of drain {journal.drain_id}, is gone: see checkpoint.retainArchives")
    damage = damage_of_archive(files, journal)
    if damage:
        raise RestoreError(
            f"{files.uri(journal.work)}, the archive of drain {journal.drain_id}, is damaged: {len(damage)} of its files are missing or "
            f"not as they were, the first of them {damage[0]}: take them back from a backup, or start any version on the checkpoint as it "
            "is"
        )
    newest = Checkpoint(files).newest_offsets
    newer = 0 if newest is None else newest + 1 - journal.first_batch_id
    refused = refuse_reuse(journal.sink_batch_ids, accepted=accept_reuse)
    if refused and (newer > 0 or journal.flush_may_be_taken):
        taken, version = ("has taken", "the version that ran there last") if newer > 0 else ("may have taken", "any version")
        raise RestoreError(
            f"the sink of {files.root} {refused} and {taken} batch {journal.flush_batch_id}, so it would skip the next batch of the "
            f"version before drain {journal.drain_id}: start {version} on the checkpoint as it is"
        )
    if newer > 0 and not discard_newer:
        raise RestoreError(
            f"{files.root} has run {newer} {'batch' if newer == 1 else 'batches'} since drain {journal.drain_id}, whose records would be "
            "processed again: give --discard-newer to accept that"
        )
    return journal


def restore(files: CheckpointFiles, journal: Journal) -> Journal:
    """Put the archive back, behind the fence; safe to stop anywhere and to repeat."""
    if journal.step is JournalStep.UNDOING:
        return finish_undo(files, journal)
    if not journal.being_undone:
        newest = Checkpoint(files).newest_offsets
        if newest is not None and newest >= journal.first_batch_id:  # nobody knows where to
            journal = replace(journal, discarded_ids=max(newest, journal.discarded_ids))
    if journal.step is not JournalStep.SUPERSEDED:
        journal = _supersede(files, write_journal(files, journal.at(JournalStep.RESTORING)))
    for part in _PARTS:
        if files.is_folder(f"{journal.work}/{part}"):
            files.merge(f"{journal.work}/{part}", part)
            reached(f"{part}-restored")
    return undo(files, journal, taken=journal.flush_may_be_taken)


def _supersede(files: CheckpointFiles, journal: Journal) -> Journal:
    """Take what has its counterpart in the archive out of the way, all of it before anything is put back."""
    reached("restoring")
    fence(files, journal)
    for part in _PARTS:
        if files.is_folder(f"{journal.work}/{part}") and files.is_folder(part):
            files.merge(part, f"{journal.work}-superseded/{part}")
            reached(f"{part}-superseded")
    return write_journal(files, journal.at(JournalStep.SUPERSEDED))
