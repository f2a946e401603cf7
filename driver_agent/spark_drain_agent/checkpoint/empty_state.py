"""The first start of a generation without state: pinned confs and an empty state as the version that starts now needs them.

Only that version knows its operators, so a drain cannot make their state. Until then a start without the agent fails: Spark looks for the
state that the batch before has left.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from spark_drain_agent.agent_thread import side_by_side
from spark_drain_agent.checkpoint.batch_ids import BatchIds
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import EMPTY_STORE, Journal, write_journal
from spark_drain_agent.checkpoint.logs import WATERMARK_POLICY, Checkpoint, OffsetEntry
from spark_drain_agent.checkpoint.state_files import versions_of
from spark_drain_agent.milestones import reached
from spark_drain_agent.spark_internals.state_stores import STATE_FORMAT, EmptyStore, OperatorStores

__all__ = [
    "EmptyStateError",
    "NextVersion",
    "OtherVersionError",
    "awaits_first_batch",
    "begin_generation",
    "interrupted_version",
    "refuse_taken_elsewhere",
]

_COPIES_AT_ONCE = 8
_WITHOUT_STATE = "a version without state"
"""Stands for a version's digest while another one takes its place, so that what may have been given to the sink is not forgotten."""
_AGAIN = "start that version until the batch is committed, and drain it before another one starts"
_SOURCES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
"""The one pinned conf that is about the offset log and not about state: its entries have names for sources, or not."""


class EmptyStateError(Exception):
    """The version that starts cannot begin with an empty state under the next batch id; nothing was touched."""


class OtherVersionError(EmptyStateError):
    """It seems to be another one than that whose first batch was interrupted."""


@dataclass(frozen=True)
class NextVersion:
    """What the version that starts now knows of itself.

    Parameters
    ----------
    fingerprint
        Of its plan.
    watermarks
        Digest of each: its column, how that is made, and its delay.
    running
        Returns whether a query of this driver is running on the checkpoint.
    confs
        Returns the confs that Spark would pin for a new query of its session.
    stores
        Returns the state stores of a batch with this metadata.
    make_empty
        Makes a store without content below a URI, with these confs.
    sink
        What it writes to, see `Journal.begun_sink`.
    taken
        Returns whether a sink (see `Journal.begun_sink`) has taken a batch of this id and would pass over it; None where only it knows.
    same
        Whether the owner says that it is the version whose first batch was interrupted.
    """

    fingerprint: str
    watermarks: tuple[str, ...]
    running: Callable[[], bool]
    confs: Callable[[], Mapping[str, str]]
    stores: Callable[[str], Sequence[OperatorStores]]
    make_empty: Callable[[Mapping[str, str], str], EmptyStore]
    sink: str
    taken: Callable[[str, int], bool | None]
    same: bool = False


@dataclass(frozen=True)
class _Beginning:
    """What the first batch of a version finds: log entries by batch id, the watermark after the batch before, its stores."""

    confs: Mapping[str, str]
    entries: dict[int, OffsetEntry]
    watermark: int
    stores: Sequence[OperatorStores]
    digest: str


def awaits_first_batch(files: CheckpointFiles, journal: Journal) -> bool:
    """Return whether a generation without state has not committed a batch."""
    return journal.left_empty and journal.awaits_first_batch(Checkpoint(files).newest_commit)


def interrupted_version(journal: Journal) -> str:
    """Return what tells the version that has begun the first batch from every other one, or "" where none has, or not one alone."""
    return "" if journal.begun_by == _WITHOUT_STATE else journal.begun_by


def begin_generation(files: CheckpointFiles, journal: Journal, version: NextVersion) -> None:
    """Prepare the first batch of a generation without state; nothing to do once one is committed. Safe to stop anywhere and to repeat.

    State that is there already is of another version that got no further, or a maintenance thread of the generation before uploaded it
    late. What an interrupted first batch of this version has written stays: a sink that has taken the batch passes over it when it is
    repeated, so that no task writes its state again.

    Raises
    ------
    EmptyStateError
        Spark would go on without the initial state that this version hands over, another version is running its first batch, or the sink
        has, or may have, taken that of another version.
    """
    if not awaits_first_batch(files, journal):
        return
    checkpoint, first = Checkpoint(files), journal.first_batch_id
    entries = _last_entries(checkpoint, first)
    planned = first > 0 and first in entries
    begun, goes_on = _recognized(journal, version, entries, planned=planned)
    _refuse_initial_state(files, journal, begun.stores)
    if version.running():
        if journal.begun_by == begun.digest:
            return
        raise EmptyStateError(
            "another version is running its first batch there in this driver: stop it, or wait until that batch is committed"
        )
    without_state = planned and _check_interrupted(files, journal, version, begun.stores, goes_on=goes_on)
    if checkpoint.newest_commit != first - 1:
        return  # planning takes a while: another start has committed the first batch meanwhile, and its state stays
    if journal.begun_by and not goes_on:
        write_journal(files, replace(journal, begun_by=_WITHOUT_STATE if without_state else ""))
    if first == 0 and begun.entries.pop(0, None) is not None:
        _plan_again(files, _taken(journal, version, 0), begun.confs.get(STATE_FORMAT, "1"))
    for number, entry in begun.entries.items():
        checkpoint.write_offsets(number, entry)
    checkpoint.write_commit(first - 1, begun.watermark, checkpoint)
    reached("confs-renewed")
    if checkpoint.newest_commit != first - 1:
        return
    if goes_on:
        _clear_up_to(files, first)
    else:
        files.delete("state")
    reached("late-state-cleared")
    # Before the state is there: a start without the agent runs some tasks on a part of it, and is no other version for that.
    write_journal(files, replace(journal, begun_by=journal.begun_by if goes_on else begun.digest, begun_sink=version.sink))
    if begun.stores:
        confs = begun.confs
        _make(files, begun.stores, first, lambda folder: version.make_empty(confs, folder))


def _last_entries(checkpoint: Checkpoint, first: int) -> dict[int, OffsetEntry]:
    """Return the entries of the last batches before the first one, and of that, by batch id.

    A batch that was planned and not committed has no state either, and Spark compares its confs with those of the batch before.
    """
    files = checkpoint.files
    found = {number: checkpoint.offsets(number) for number in (first - 2, first - 1, first) if files.is_file(f"offsets/{number}")}
    if first not in found:
        files.drop_checksum(f"offsets/{first}")
    return found


def _taken(journal: Journal, version: NextVersion, batch_id: int) -> bool | None:
    """Return whether the sink of this version, or that of the one that was interrupted, has taken a batch; None where one may have."""
    found = [version.taken(sink, batch_id) for sink in {version.sink, journal.begun_sink or version.sink}]
    return True if True in found else None if None in found else False


def _check_interrupted(
    files: CheckpointFiles, journal: Journal, version: NextVersion, stores: Sequence[OperatorStores], *, goes_on: bool
) -> bool:
    """Refuse what would lose or double the interrupted first batch; return whether another version without state was interrupted in it."""
    first = journal.first_batch_id
    refuse_taken_elsewhere(files, journal, first, version.sink, version.taken)  # whatever the owner says of the version
    if goes_on:
        return False
    versions = set(versions_of(files.below("state")).values())
    without_state = bool(journal.begun_by) and first not in versions
    _refuse_taken(files, journal, version, stores, later=max(versions, default=0) > first, unseen=without_state)
    return without_state


def refuse_taken_elsewhere(
    files: CheckpointFiles, journal: Journal, batch_id: int, sink: str, taken: Callable[[str, int], bool | None]
) -> None:
    """Refuse a planned batch that the sink of an interrupted version has, or may have, taken, where this one writes to another ``sink``.

    Raises
    ------
    EmptyStateError
        It would be written once more.
    """
    found = taken(journal.begun_sink, batch_id) if journal.begun_sink not in ("", sink) else False
    if found:
        raise EmptyStateError(
            f"an earlier start was interrupted when its sink, {journal.begun_sink}, had taken batch {batch_id}, which this one "
            f"would write once more, to {sink}: {_AGAIN}"
        )
    if found is None:
        entry = files.uri(f"offsets/{batch_id}")
        raise EmptyStateError(
            f"an earlier start was interrupted in batch {batch_id}, which its sink, {journal.begun_sink}, may have taken, and which this "
            f"one would write once more, to {sink}: {_AGAIN}; if its sink has not taken it, remove {entry} and start again"
        )


def _refuse_taken(
    files: CheckpointFiles, journal: Journal, version: NextVersion, stores: Sequence[OperatorStores], *, later: bool, unseen: bool
) -> None:
    """Refuse another version's interrupted batch that the sink has taken, or may have, where state minds.

    It does where tasks have written state in it (``later``), which exists nowhere else; and to a version with ``stores``, whose state no
    task writes where the sink passes over the batch. Of one without state it is ``unseen`` how far it got.
    """
    first, taken = journal.first_batch_id, _taken(journal, version, journal.first_batch_id)
    if taken and (later or stores):
        raise OtherVersionError(
            f"another version was interrupted when the sink had taken batch {first}, which would be passed over: {_AGAIN}"
        )
    if taken is None and (later or (unseen and stores)):
        back = f", or go back with `{_go_back(files, ' --discard-newer')}`"
        raise OtherVersionError(
            f"another version was interrupted in batch {first}, which the sink may have taken and would then pass over: {_AGAIN}"
            f"{back if journal.sink_batch_ids.may_start_again else ''}; if the sink has not taken it, or replaces what it has of a batch, "
            f"remove {files.uri(f'offsets/{first}')} and start again"
        )


def _recognized(journal: Journal, version: NextVersion, entries: Mapping[int, OffsetEntry], *, planned: bool) -> tuple[_Beginning, bool]:
    """Return how a version begins, and whether it is the one that has planned the first batch: then with the confs of that start."""
    pinned = entries[journal.first_batch_id - 1].metadata.get("conf", {})
    if planned and journal.begun_by:
        begun = _beginning(journal, version, entries, pinned)
        if version.same or begun.digest == journal.begun_by:
            return begun, True
    kept = {name: pinned[name] for name in (_SOURCES,) if name in pinned}
    return _beginning(journal, version, entries, {**version.confs(), **kept}), False


def _beginning(journal: Journal, version: NextVersion, entries: Mapping[int, OffsetEntry], confs: Mapping[str, str]) -> _Beginning:
    """Return how a version begins with these pinned confs."""
    first = journal.first_batch_id
    # What is made otherwise may lag far behind: at the watermark of the version before, its records would be late and dropped.
    same = journal.watermarks in (None, version.watermarks) and (
        len(version.watermarks) < 2 or journal.watermark_policy in ("", confs.get(WATERMARK_POLICY, ""))  # one is one
    )
    watermark, late = (journal.watermark_ms, journal.late_watermark_ms) if same else (0, 0)
    made = {
        number: entry.with_confs(confs).at(watermark if number == first else late, entry.batch_time_ms) for number, entry in entries.items()
    }
    stores = version.stores(json.dumps(made[first - 1].metadata)) if first > 0 else ()
    digest = hashlib.sha256(f"{version.fingerprint}\n{sorted(confs.items())}\n{stores}".encode()).hexdigest()[:32]
    return _Beginning(confs, made, watermark, stores, digest)


def _clear_up_to(files: CheckpointFiles, version: int) -> None:
    """Remove the state of the generation before, which has lower versions, and the empty one, to be made again; not that of later ones."""
    for name, found in versions_of(files.below("state")).items():
        if found <= version:
            files.delete(name)


def _plan_again(files: CheckpointFiles, taken: bool | None, state_format: str) -> None:
    """Take back a batch 0 that was not committed: Spark would repeat it from the sources' beginning, not from the entry before.

    With what has come since it would be another batch, which a sink that has taken the first one would pass over.
    """
    if state_format == "1":
        two_lines = '`v1` and `{"nextBatchWatermarkMs":0}`'
        go_on = (
            f"write {files.uri('commits/0')} of two lines, {two_lines}, and start the same version again, which goes on after that batch"
        )
    else:  # a commit names the state of its batch there, which Spark alone knows
        go_on = f"start with another checkpointLocation, from the offsets on with which that batch ended, in {files.uri('offsets/0')}"
    if taken:
        raise EmptyStateError(f"its first batch was interrupted when the sink had taken it: {go_on}")
    if taken is None:
        raise EmptyStateError(
            "its first batch was interrupted, and the sink may have taken it, which only the sink knows: if it has not, remove "
            f"{files.uri('offsets/0')} and start again; if it has, {go_on}"
        )
    files.delete("offsets/0")
    reached("planned-again")


def _go_back(files: CheckpointFiles, more: str = "") -> str:
    return f"python -m spark_drain_agent resume --from archive{more} {files.root}"


def _refuse_initial_state(files: CheckpointFiles, journal: Journal, stores: Sequence[OperatorStores]) -> None:
    initial = [item.operator for item in stores if item.initial_state]
    if not initial:
        return
    back, elsewhere = "", ", or with another checkpointLocation, from the end offsets of that drain on"
    if journal.sink_batch_ids is not BatchIds.REMEMBERED:
        again = "drain again with checkpoint.policy 'Reseed' and checkpoint.acceptBatchIdRestart 'true'"
        back = f"go back with `{_go_back(files)}` and {again}, or "
        elsewhere = ""
    raise EmptyStateError(
        f"{', '.join(initial)} has an initial state, which Spark applies in batch 0 only, and the first batch is {journal.first_batch_id}: "
        f"{back}start without an initial state{elsewhere}"
    )


def _make(files: CheckpointFiles, stores: Sequence[OperatorStores], version: int, make_empty: Callable[[str], EmptyStore]) -> None:
    files.delete(EMPTY_STORE)
    made = make_empty(files.uri(EMPTY_STORE))
    source = f"{EMPTY_STORE}{made.uri.split(EMPTY_STORE, 1)[1]}"
    reached("empty-store-made")
    for item in stores:
        if item.metadata:
            files.write(f"state/{item.operator_id}/_metadata/v2/{version - 1}", item.metadata)
    first, *others = [f"{folder}/{version}.{made.suffix}" for item in stores for folder in item.folders()]
    files.copy(source, first)
    reached("empty-state-begun")
    side_by_side(partial(files.copy, source), others, _COPIES_AT_ONCE, "spark-drain-files")
    files.delete(EMPTY_STORE)
    reached("empty-state-made")
