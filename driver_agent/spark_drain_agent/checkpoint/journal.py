"""The write-ahead record of a drain in the checkpoint that it changes: what was done, and what is needed to go on or back."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from spark_drain_agent.checkpoint.batch_ids import BatchIds
from spark_drain_agent.checkpoint.files import CheckpointFiles, CheckpointLeasedError

__all__ = [
    "DRAIN_FOLDER",
    "EMPTY_STORE",
    "JOURNAL_FILE",
    "Journal",
    "JournalStep",
    "MalformedJournalError",
    "read_journal",
    "write_journal",
]

DRAIN_FOLDER = "_drain"
"""Folder in the checkpoint for the journal and the archived generations; Spark ignores it (measured)."""

JOURNAL_FILE = f"{DRAIN_FOLDER}/journal"

EMPTY_STORE = f"{DRAIN_FOLDER}/empty-store"
"""Where the empty state of a next version is made."""


class MalformedJournalError(Exception):
    """The journal cannot be read, or is missing where there was one; starting the query anyway could lose data."""

    @classmethod
    def missing(cls, root: str) -> MalformedJournalError:
        """Return that of a fenced checkpoint without a journal."""
        return cls(
            f"{root} is fenced, and its {JOURNAL_FILE}, which says how far the drain has come, is missing: take the checkpoint back from a "
            "backup"
        )

    @classmethod
    def old(cls, root: str, drain_id: str) -> MalformedJournalError:
        """Return that of a checkpoint whose journal says that it is fenced, which it is not."""
        return cls(
            f"{root}: {JOURNAL_FILE} says that drain {drain_id} is in its middle, but the checkpoint is not fenced: the journal is older "
            "than the checkpoint, as when it is written late or copied in part. Put the newer journal back; or, if a version has run there "
            "since that drain, remove the old one"
        )

    @classmethod
    def unfinished(cls, root: str) -> MalformedJournalError:
        """Return that of a checkpoint that another drain has left in its middle."""
        return cls(f"{root} is in the middle of another drain: the next start of the same version ends that one")


class JournalStep(IntEnum):
    """Last completed step. Each step can be repeated, so a crash between a step and its entry does no harm.

    Whether a prepared drain has begun shows in the checkpoint's metadata: before the fence, nothing has changed.
    """

    PREPARED = 1
    FLUSH_LOGGED = 2
    FLUSHED = 3
    SEEDED = 4
    DONE = 5
    UNDONE = 6
    RESTORING = 7
    """The archive of this drain is to be put back; see `checkpoint.restore`."""
    UNDOING = 8
    """The drain is being undone; see `checkpoint.undo`."""
    SUPERSEDED = 9
    """What the archive takes the place of is out of its way."""


@dataclass(frozen=True, kw_only=True)
class Journal:
    """One drain of one query.

    Parameters
    ----------
    drain_id
        The drain.
    step
        See `JournalStep`.
    checkpoint_policy
        ``Reseed``, ``Continue`` or ``Keep``.
    query_name, sink, sources
        For reports.
    batch_id
        Newest committed batch N; the flush is batch N + 1.
    watermark_ms
        Event-time watermark after batch N.
    late_ms
        The watermark below which the batch after N would have dropped records as late: Spark drops by that of the batch before. None where
        it was not noted.
    watermarks
        Digest of each watermark: its column, how that is made, and its delay; None where they were not noted.
    given_up
        Whether somebody has given up the flush, so that what was open is only in the archive.
    watermark_policy
        How several watermarks became one: ``min`` or ``max``; "" where it was not noted.
    metadata
        The checkpoint's metadata before the fence.
    fingerprint
        Of the query's plan: only the same plan may execute the flush batch.
    spark_version, application, runs
        Who wrote it, for messages.
    generation
        How often this checkpoint has been drained when this drain is done.
    flushes
        Whether there is a flush batch to run.
    empty
        Whether no batch was run since the drain before, which has left no state.
    processing_time
        Whether an operator has timers that follow the clock, so that the flush batch's clock goes beyond them.
    windows
        What becomes of incomplete windows: ``Emit``, ``SideOutput`` or ``Discard``.
    side_output, side_output_format
        With ``SideOutput``: URI of the query's folder, and the format in it.
    state_export
        URI of the folder for the query's exported state, or "".
    state_rows
        State rows before the flush, per operator; empty when unknown.
    first_batch_id
        Id of the next generation's first batch, where that begins without state.
    sink_folder
        URI of the folder of a file sink, or "".
    batch_ids
        Name in `BatchIds`: what the sink does with ids that it has seen.
    flush_may_be_taken
        Whether rows of the flush batch may be in the sink.
    earlier_sink_remembers
        Whether an earlier generation wrote to a sink that may remember batch ids.
    discarded_ids
        Highest id of the batches after an earlier drain that were given up when that was taken back; -1 where there were none.
    archive
        Digest of the list of the archive's files, or "" where an older agent made it, or nothing is archived.
    begun_by
        Digest of the version for which the empty state of the next generation was made, or "".
    begun_sink
        What that version writes to: the URI of a file sink's folder, or the name of another sink with its table, path or topic, where it
        has one, as in ``delta to events``; "" where it was not noted.
    """

    drain_id: str
    step: JournalStep
    checkpoint_policy: str
    query_name: str
    sink: str
    sources: tuple[str, ...]
    batch_id: int
    watermark_ms: int
    metadata: str
    fingerprint: str
    spark_version: str
    application: str
    generation: int
    flushes: bool
    processing_time: bool = False
    windows: str = "Emit"
    side_output: str = ""
    side_output_format: str = ""
    state_export: str = ""
    state_rows: tuple[int, ...] = ()
    first_batch_id: int = 0
    sink_folder: str = ""
    batch_ids: str = BatchIds.UNKNOWN.name
    flush_may_be_taken: bool = True
    begun_by: str = ""
    earlier_sink_remembers: bool = False
    discarded_ids: int = -1
    watermarks: tuple[str, ...] | None = None
    watermark_policy: str = ""
    given_up: bool = False
    archive: str = ""
    late_ms: int | None = None
    empty: bool = False
    begun_sink: str = ""

    @property
    def work(self) -> str:
        """Name of the work copy, later the archive, relative to the checkpoint."""
        return f"{DRAIN_FOLDER}/{self.drain_id}"

    @property
    def late_watermark_ms(self) -> int:
        """Watermark below which the first batch after the drain drops records."""
        return self.watermark_ms if self.late_ms is None else min(self.late_ms, self.watermark_ms)

    @property
    def flush_batch_id(self) -> int:
        """Id of the batch that emits the drain pane."""
        return self.batch_id + 1

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self.step in (JournalStep.DONE, JournalStep.UNDONE)

    @property
    def drains(self) -> int:
        """How often this checkpoint has been drained."""
        return self.generation if self.step is JournalStep.DONE else self.generation - 1

    @property
    def taken_back(self) -> bool:
        """Whether somebody has decided that the drain does not do what it was asked for: it is undone, or without its flush."""
        return self.given_up or self.step is JournalStep.UNDONE or self.being_undone

    @property
    def being_undone(self) -> bool:
        """Whether what was decided to be undone is not yet: only that can be done with the checkpoint."""
        return self.step in (JournalStep.RESTORING, JournalStep.SUPERSEDED, JournalStep.UNDOING)

    @property
    def copies(self) -> bool:
        """Whether logs and state are taken to the work copy."""
        return self.flushes or self.checkpoint_policy == "Reseed"

    @property
    def sink_batch_ids(self) -> BatchIds:
        """What the sink does with ids that it has seen."""
        return BatchIds[self.batch_ids]

    @property
    def ids_are_remembered(self) -> bool:
        """Whether a sink that was written to up to now may remember batch ids."""
        return self.earlier_sink_remembers or self.discarded_ids >= 0 or not self.sink_batch_ids.may_start_again

    @property
    def begins_empty(self) -> bool:
        """Whether the next generation has no state to go on from: it was reseeded, or no operator kept any."""
        return self.checkpoint_policy == "Reseed" or (self.checkpoint_policy == "Continue" and not self.flushes)

    @property
    def left_empty(self) -> bool:
        """Whether what comes after this drain, or after it was undone, has no state to go on from."""
        return (self.step is JournalStep.DONE or (self.step is JournalStep.UNDONE and self.empty)) and self.begins_empty

    def awaits_first_batch(self, newest_commit: int | None) -> bool:
        """Return whether a generation without state has not committed a batch, by the newest one that is committed."""
        return self.left_empty and newest_commit == self.first_batch_id - 1

    def undone(self) -> Journal:
        """Return the journal of the drain once it is undone: where nothing was run since the one before, that has left no state."""
        undone = self.at(JournalStep.UNDONE)
        if not self.empty:
            return undone
        return dataclasses.replace(undone, checkpoint_policy="Reseed", first_batch_id=self.flush_batch_id, begun_by="", begun_sink="")

    def at(self, step: JournalStep) -> Journal:
        """Return the journal after another step."""
        return dataclasses.replace(self, step=step)


def read_journal(files: CheckpointFiles) -> Journal | None:
    """Return the journal of a checkpoint's last drain, None where it was never drained.

    Raises
    ------
    MalformedJournalError
        The file is there but cannot be understood.
    """
    text = files.read(JOURNAL_FILE)
    if text is None:
        return None
    try:
        loaded: Any = json.loads(text)
        if not isinstance(loaded, dict):
            raise TypeError("it is no JSON object")
        known = {field.name for field in dataclasses.fields(Journal)}
        values = {key: value for key, value in loaded.items() if key in known}
        values["step"] = JournalStep(loaded["step"])
        values["sources"] = tuple(loaded["sources"])
        values["state_rows"] = tuple(loaded.get("state_rows", ()))
        values["watermarks"] = None if loaded.get("watermarks") is None else tuple(loaded["watermarks"])
        BatchIds[loaded.get("batch_ids", BatchIds.UNKNOWN.name)]
        return Journal(**values)
    except (ValueError, TypeError, KeyError) as error:
        raise MalformedJournalError(
            f"the drain journal {files.uri(JOURNAL_FILE)} cannot be read ({error}): take it back from a backup, or from an earlier "
            "version of the object"
        ) from error


def write_journal(files: CheckpointFiles, journal: Journal) -> Journal:
    """Replace the journal and return it.

    Raises
    ------
    CheckpointLeasedError
        Another driver has written it meanwhile.
    """
    if not files.replace(JOURNAL_FILE, json.dumps(dataclasses.asdict(journal), indent=1)):
        raise CheckpointLeasedError(f"{files.uri(JOURNAL_FILE)}: another driver has written it meanwhile")
    return journal
