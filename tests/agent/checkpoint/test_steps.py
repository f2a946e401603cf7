"""Offset log, commit log and journal as text: read, rewritten, and refused where the format is another."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
from spark_drain_agent.checkpoint.complete import Application, complete
from spark_drain_agent.checkpoint.fence import can_undo, fence, fence_line, is_fence, never_fenced
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.flush import archive_running_flush, copy_to_work, log_flush
from spark_drain_agent.checkpoint.journal import EMPTY_STORE, Journal, JournalStep, MalformedJournalError, read_journal, write_journal
from spark_drain_agent.checkpoint.lease import LEASE_FILES
from spark_drain_agent.checkpoint.logs import END_OF_TIME_MS, END_OF_TIMERS_MS, Checkpoint, OffsetEntry, UnknownCheckpointFormatError
from spark_drain_agent.checkpoint.seed import prune_archives, seed
from spark_drain_agent.checkpoint.undo import finish_undo, undo

from tests.agent.folder import files_in

# As Spark 4.2 writes it, for two sources of which the second has delivered nothing yet.
OFFSETS = (
    'v1\n{"batchWatermarkMs":1000,"batchTimestampMs":2000,"conf":{"spark.sql.shuffle.partitions":"2","spark.sql.x":"y"}}\n'
    '{"topic":{"0":17}}\n-'
)
COMMIT = 'v1\n{"nextBatchWatermarkMs":1500}'
OPERATOR = (
    'v2\n{"operatorInfo":{"operatorId":0,"operatorName":"transformWithStateInPandasExec"},"stateStoreInfo":[],'
    r'"operatorPropertiesJson":"{\"timeMode\":\"None\",\"stateVariables\":[{\"stateName\":\"ids\",\"ttlEnabled\":false}]}"}'
)

JOURNAL = Journal(
    drain_id="6f1c",
    step=JournalStep.PREPARED,
    checkpoint_policy="Reseed",
    query_name="orders",
    sink="kafka",
    sources=("KafkaV2[Subscribe[orders]]",),
    batch_id=7,
    watermark_ms=1500,
    metadata='{"id":"abc"}',
    fingerprint="f",
    spark_version="4.2.0",
    application="local-1",
    generation=2,
    flushes=True,
)


def test_an_entry_is_rendered_as_it_was_read() -> None:
    entry = OffsetEntry.parse("offsets/7", OFFSETS)
    assert entry.offsets == ('{"topic":{"0":17}}', "-")
    assert entry.text() == OFFSETS


@pytest.mark.parametrize(
    ("lines", "offsets"),
    [
        (['0:{"topic":{"0":17}}'], ('{"topic":{"0":17}}',)),
        (["0:-", '1:{"logOffset":2}'], ("-", '{"logOffset":2}')),
        (["10:c", "2:b", "0:a"], ("a", "b", "c")),
        (['clicks:{"logOffset":2}'], ('{"logOffset":2}',)),
    ],
)
def test_sources_of_a_newer_offset_log_have_names(lines: list[str], offsets: tuple[str, ...]) -> None:
    text = "\n".join(["v2", '{"batchWatermarkMs":1000,"sourceMetadataInfo":{}}', *lines])
    entry = OffsetEntry.parse("offsets/7", text)
    assert entry.offsets == offsets
    assert entry.text() == text


def test_watermark_and_clock_change_nothing_else() -> None:
    entry = OffsetEntry.parse("offsets/7", OFFSETS)
    moved = entry.at(END_OF_TIME_MS, 5)
    assert moved.metadata == {**entry.metadata, "batchWatermarkMs": END_OF_TIME_MS, "batchTimestampMs": 5}
    assert moved.offsets == entry.offsets
    assert moved.at(1000, 2000) == entry


def test_unpinned_confs() -> None:
    entry = OffsetEntry.parse("offsets/7", OFFSETS).without_confs("spark.sql.shuffle.partitions", "spark.sql.absent")
    assert entry.metadata["conf"] == {"spark.sql.x": "y"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OFFSETS.replace("v1", "v3", 1), "format 'v3'"),
        (OFFSETS.replace("v1", "v3", 1), "keep spark.sql.streaming.offsetLog.formatVersion at 2 or below"),
        ("", "format ''"),
        ("v1", "format 'v1'"),
        ("v1\n\n{}", "no metadata in its second line: ''"),
        ("v1\nbroken\n{}", "no metadata in its second line: 'broken'"),
    ],
)
def test_other_offset_formats_are_refused(text: str, words: str) -> None:
    with pytest.raises(UnknownCheckpointFormatError, match="offsets/7") as refused:
        OffsetEntry.parse("offsets/7", text)
    assert words in str(refused.value)


def checkpoint(files: CheckpointFiles, offsets: int, commits: int) -> Checkpoint:
    for batch in range(offsets + 1):
        files.write(f"offsets/{batch}", OFFSETS)
    for batch in range(commits + 1):
        files.write(f"commits/{batch}", COMMIT)
    files.write("metadata", JOURNAL.metadata)
    files.write("state/0/0/1.delta", "state")
    return Checkpoint(files)


def test_newest_entries_are_numbers_not_names(tmp_path: Path) -> None:
    found = checkpoint(files_in(tmp_path), 10, 9)
    found.files.write("offsets/.11.crc", "")
    found.files.write("offsets/-1", OFFSETS)
    assert (found.newest_offsets, found.newest_commit, found.settled) == (10, 9, False)
    found.write_commit(10, 3)
    assert found.settled


@pytest.mark.parametrize(
    ("newest", "expires"),
    [
        (OPERATOR.replace("false", "true"), True),
        (OPERATOR, False),
        ('v2\n{"operatorInfo":{"operatorId":0},"operatorPropertiesJson":""}', False),
        ("v1\n{}", False),
        ("broken", False),
    ],
)
def test_state_with_a_time_to_live_is_known_from_the_newest_operator_metadata(tmp_path: Path, newest: str, expires: bool) -> None:
    found = checkpoint(files_in(tmp_path), 7, 7)
    assert not found.state_expires
    found.files.write("state/0/_metadata/v2/9", OPERATOR.replace("false", "true"))
    assert found.state_expires
    found.files.write("state/0/_metadata/v2/10", newest)
    assert found.state_expires is expires


def test_schemas_of_moved_state_stay_where_its_metadata_looks_for_them(tmp_path: Path) -> None:
    found = checkpoint(files_in(tmp_path), 7, 7)
    found.files.write("state/0/_stateSchema/default/0_a", "schema")
    fence(found.files, JOURNAL)
    for _ in range(2):  # as after a crash in between
        copy_to_work(found.files, JOURNAL)
        assert found.files.names("state/0") == ["_stateSchema"]
        assert found.files.read("state/0/_stateSchema/default/0_a") == "schema"
        assert found.files.names(f"{JOURNAL.work}/state/0") == ["0", "_stateSchema"]
    undo(found.files, JOURNAL)
    assert found.files.names("state/0") == ["0", "_stateSchema"]


@pytest.mark.parametrize("processing_time", [False, True])
def test_a_flush_sees_the_real_clock_unless_timers_follow_it(tmp_path: Path, processing_time: bool) -> None:
    found, before = checkpoint(files_in(tmp_path), 7, 7), int(time.time() * 1000)
    journal = dataclasses.replace(JOURNAL, processing_time=processing_time)
    log_flush(found.files, journal, copy_to_work(found.files, journal))
    planned = Checkpoint(found.files, journal.work).offsets(8)
    assert planned.watermark_ms == END_OF_TIME_MS
    assert planned.offsets == found.offsets(7).offsets
    if processing_time:
        assert planned.batch_time_ms == END_OF_TIMERS_MS
    else:
        assert before <= planned.batch_time_ms <= time.time() * 1000


@pytest.mark.parametrize(
    ("conf", "state", "pinned"),
    [
        ({}, 'v1\n{"operatorInfo":{},"stateStoreInfo":[{"storeName":"default","numPartitions":5}]}', "5"),
        ({"spark.sql.shuffle.partitions": "7"}, 'v1\n{"stateStoreInfo":[{"numPartitions":5}]}', "7"),
        ({}, "broken", None),
        ({}, None, None),
    ],
)
def test_a_flush_says_in_how_many_partitions_the_state_is(
    tmp_path: Path, conf: dict[str, str], state: str | None, pinned: str | None
) -> None:
    found = checkpoint(files_in(tmp_path), 7, 7)
    entry = found.offsets(7)
    found.write_offsets(7, dataclasses.replace(entry, metadata={**entry.metadata, "conf": conf}))
    if state is not None:
        found.files.write("state/0/_metadata/metadata", state)
    log_flush(found.files, JOURNAL, copy_to_work(found.files, JOURNAL))
    for batch_id in (7, 8):
        assert Checkpoint(found.files, JOURNAL.work).offsets(batch_id).metadata["conf"].get("spark.sql.shuffle.partitions") == pinned
    assert found.offsets(7).metadata["conf"] == conf


def test_the_clock_of_a_flush_never_goes_back(tmp_path: Path) -> None:
    found = checkpoint(files_in(tmp_path), 7, 7)
    found.write_offsets(7, found.offsets(7).at(1000, END_OF_TIMERS_MS - 1))
    log_flush(found.files, JOURNAL, copy_to_work(found.files, JOURNAL))
    assert Checkpoint(found.files, JOURNAL.work).offsets(8).batch_time_ms == END_OF_TIMERS_MS - 1


@pytest.mark.parametrize(("watermark", "kept"), [(END_OF_TIME_MS, True), (1500, False)])
def test_a_flush_that_a_running_query_had_planned_keeps_its_clock(tmp_path: Path, watermark: int, kept: bool) -> None:
    found = checkpoint(files_in(tmp_path), 7, 7)
    found.write_offsets(8, found.offsets(7).at(watermark, 3000))
    log_flush(found.files, JOURNAL, copy_to_work(found.files, JOURNAL))
    planned = Checkpoint(found.files, JOURNAL.work).offsets(8)
    assert planned.watermark_ms == END_OF_TIME_MS
    assert (planned.batch_time_ms == 3000) is kept


def test_an_empty_checkpoint_is_settled(tmp_path: Path) -> None:
    empty = Checkpoint(files_in(tmp_path))
    assert (empty.newest_offsets, empty.newest_commit, empty.settled, empty.metadata) == (None, None, True, None)


@pytest.mark.parametrize(
    ("commit", "watermark"), [(COMMIT, 1500), ('v1\n{"nextBatchWatermarkMs":0}', 1000), ("v1\n{}", 1000), ("v1", 1000)]
)
def test_watermark_after_a_batch(tmp_path: Path, commit: str, watermark: int) -> None:
    found = checkpoint(files_in(tmp_path), 7, 6)
    found.files.write("commits/7", commit)
    assert found.watermark_after(7) == watermark


@pytest.mark.parametrize(
    "commit",
    ["", 'v4\n{"nextBatchWatermarkMs":1}', "v1\n[]", "v2\nbroken"],
)
def test_other_commit_formats_are_refused(tmp_path: Path, commit: str) -> None:
    found = checkpoint(files_in(tmp_path), 7, 6)
    found.files.write("commits/7", commit)
    with pytest.raises(UnknownCheckpointFormatError, match=r"commits/7.*checkpointFormatVersion at 2 or below"):
        found.watermark_after(7)


def test_a_missing_entry_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownCheckpointFormatError, match="offsets/3 is missing"):
        Checkpoint(files_in(tmp_path)).offsets(3)


def test_new_metadata_has_another_id_each_time() -> None:
    ids = {json.loads(Checkpoint.new_metadata())["id"] for _ in range(3)}
    assert len(ids) == 3


# -- the journal -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", list(JournalStep))
def test_a_journal_is_read_as_it_was_written(tmp_path: Path, step: JournalStep) -> None:
    files = files_in(tmp_path)
    assert read_journal(files) is None
    assert write_journal(files, JOURNAL.at(step)) == read_journal(files) == dataclasses.replace(JOURNAL, step=step)


def test_a_journal_of_an_older_agent_may_have_fewer_fields(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    write_journal(files, dataclasses.replace(JOURNAL, windows="Discard", state_rows=(3, 4)))
    assert read_journal(files) == dataclasses.replace(JOURNAL, windows="Discard", state_rows=(3, 4))
    newer = ("processing_time", "windows", "side_output", "side_output_format", "state_export", "state_rows")
    old = {name: value for name, value in dataclasses.asdict(JOURNAL).items() if name not in newer}
    files.write("_drain/journal", json.dumps(old))
    assert read_journal(files) == JOURNAL


def test_a_journal_of_a_newer_agent_may_have_more_fields(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    write_journal(files, JOURNAL)
    files.write("_drain/journal", json.dumps({**json.loads(files.read("_drain/journal") or ""), "colour": "blue"}))
    assert read_journal(files) == JOURNAL


@pytest.mark.parametrize("damage", ["", "[]", "{}", "half a jour", json.dumps({**dataclasses.asdict(JOURNAL), "step": 99})])
def test_a_damaged_journal_is_never_ignored(tmp_path: Path, damage: str) -> None:
    files = files_in(tmp_path)
    files.write("_drain/journal", damage)
    with pytest.raises(MalformedJournalError, match="_drain/journal cannot be read"):
        read_journal(files)


# -- what the steps leave behind ---------------------------------------------------------------------------------------------------


def test_a_fence_is_no_json_and_names_the_drain(tmp_path: Path) -> None:
    found = checkpoint(files_in(tmp_path), 7, 7)
    fence(found.files, JOURNAL)
    assert is_fence(found.metadata)
    assert "6f1c" in fence_line("6f1c")
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(found.metadata or "")
    assert not is_fence(JOURNAL.metadata)
    assert not is_fence(None)


def test_undo_puts_state_and_metadata_back(tmp_path: Path) -> None:
    found = checkpoint(files_in(tmp_path), 7, 7)
    fence(found.files, write_journal(found.files, JOURNAL))
    found.files.merge("state", f"{JOURNAL.work}/state")
    undo(found.files, JOURNAL)
    assert found.metadata == JOURNAL.metadata
    assert found.files.read("state/0/0/1.delta") == "state"
    assert not found.files.is_folder(JOURNAL.work)
    undone = read_journal(found.files)
    assert undone is not None
    assert (undone.over, undone.drains) == (True, JOURNAL.generation - 1)


def test_metadata_that_was_lost_while_the_fence_replaced_it_is_put_back(tmp_path: Path) -> None:
    """As a kill leaves it on a filesystem that deletes what it replaces; a Spark that had started would have written new metadata."""
    found = checkpoint(files_in(tmp_path), 7, 7)
    journal = write_journal(found.files, JOURNAL)
    found.files.delete("metadata")
    assert not never_fenced(found.files, journal)
    decided = write_journal(found.files, journal.at(JournalStep.UNDOING))
    for begun in (journal, decided):
        found.files.delete("metadata")
        undo(found.files, begun) if begun is journal else finish_undo(found.files, begun)
        assert found.metadata == JOURNAL.metadata


@pytest.mark.parametrize(
    ("fenced", "step", "newest", "expected"),
    [
        (True, JournalStep.PREPARED, (7, None), True),
        (True, JournalStep.PREPARED, (7, 7), True),
        (True, JournalStep.PREPARED, (8, None), False),  # the running query had planned its flush
        (True, JournalStep.PREPARED, (7, 8), False),
        (False, JournalStep.PREPARED, (8, None), True),  # never fenced, and Spark ran on: batch 8 is no flush
        (True, JournalStep.FLUSH_LOGGED, (7, 8), False),
        (False, JournalStep.SEEDED, (-1, 8), False),
    ],
)
def test_what_can_be_undone(tmp_path: Path, fenced: bool, step: JournalStep, newest: tuple[int, int | None], expected: bool) -> None:
    live, work = newest
    found = checkpoint(files_in(tmp_path), live, live)
    journal = write_journal(found.files, JOURNAL.at(step))
    if fenced:
        fence(found.files, journal)
    if work is not None:
        Checkpoint(found.files, journal.work).write_offsets(work, OffsetEntry.parse("", OFFSETS))
    assert can_undo(found.files, journal) is expected


@pytest.mark.parametrize("archived", [["metadata"], ["offsets/7", "metadata"], []])
def test_logs_that_an_earlier_agent_has_archived_in_part(archived: list[str], tmp_path: Path) -> None:
    """It wrote the metadata first."""
    live = checkpoint(files_in(tmp_path), 8, 8)
    for name in archived:
        live.files.write(f"{JOURNAL.work}/{name}", OFFSETS)
    archive_running_flush(live.files, JOURNAL)
    work = Checkpoint(live.files, JOURNAL.work)
    assert (work.newest_offsets, work.newest_commit, work.metadata) == (7, 7, JOURNAL.metadata)


@pytest.mark.parametrize("step", [JournalStep.FLUSH_LOGGED, JournalStep.FLUSHED])
def test_a_journal_that_is_older_than_its_checkpoint_is_not_believed(tmp_path: Path, step: JournalStep) -> None:
    """Written late, by a driver or store that stood still, or copied in part: the next version has read on, and its logs stay."""
    live = checkpoint(files_in(tmp_path), 9, 9)
    live.files.write(f"{JOURNAL.work}/offsets/7", OFFSETS)
    live.files.write(f"{JOURNAL.work}/commits/7", COMMIT)
    before = live.files.below("")

    def nothing_happens(*_: object) -> Any:
        raise AssertionError("the application is asked for something")

    application = Application(launch_once=nothing_happens, check_version=nothing_happens, export=nothing_happens)
    with pytest.raises(MalformedJournalError, match="is not fenced"):
        complete(live.files, dataclasses.replace(JOURNAL, step=step), application)
    assert live.files.below("") == before
    fence(live.files, JOURNAL)
    assert complete(live.files, dataclasses.replace(JOURNAL, step=JournalStep.FLUSHED), application).journal.step is JournalStep.DONE


def test_a_flush_that_a_signal_handler_leaves_has_not_failed(tmp_path: Path) -> None:
    """The program's `start()` finishes what a drain has begun; Py4J makes an error of its own of what the handler raises."""
    live = checkpoint(files_in(tmp_path), 7, 7)
    fence(live.files, JOURNAL)
    journal = log_flush(live.files, JOURNAL, copy_to_work(live.files, JOURNAL))

    def is_left(_: str) -> Any:
        raise Py4JError("An error occurred while calling o425.awaitTermination")

    application = Application(launch_once=is_left, check_version=lambda _: None, export=lambda _: None)
    with pytest.raises(Py4JError, match="o425"):
        complete(live.files, journal, application)


def test_reseeded_logs(tmp_path: Path) -> None:
    found = checkpoint(files_in(tmp_path), 7, 7)
    copy_to_work(found.files, JOURNAL)
    seed(found.files, JOURNAL)
    assert found.files.names("offsets") == ["-1", "-2"]
    assert found.files.names("commits") == ["-1"]
    entry = found.offsets(-1)
    assert entry == found.offsets(-2)
    assert entry.offsets == OffsetEntry.parse("", OFFSETS).offsets
    assert entry.metadata == {"batchWatermarkMs": 1500, "batchTimestampMs": 2000, "conf": {"spark.sql.x": "y"}}
    assert found.watermark_after(-1) == 1500
    assert not found.files.is_folder("state")


@pytest.mark.parametrize("policy", ["Reseed", "Continue"])
def test_what_is_late_after_a_drain_is_what_was_late_before_it(tmp_path: Path, policy: str) -> None:
    """Spark drops what is older than the watermark of the batch before, and emits what the new one has passed."""
    found = checkpoint(files_in(tmp_path), 7, 7)
    journal = dataclasses.replace(JOURNAL, checkpoint_policy=policy, first_batch_id=9, late_ms=1000)
    copy_to_work(found.files, journal)
    found.files.write(f"{JOURNAL.work}/commits/8", COMMIT)
    seed(found.files, journal)
    assert (found.offsets(8).watermark_ms, found.watermark_after(8)) == (1000, 1500)


def test_continued_logs(tmp_path: Path) -> None:
    found = checkpoint(files_in(tmp_path), 7, 7)
    found.files.merge("state", f"{JOURNAL.work}/state")
    found.files.write(f"{JOURNAL.work}/commits/8", COMMIT)
    seed(found.files, dataclasses.replace(JOURNAL, checkpoint_policy="Continue"))
    assert (found.newest_offsets, found.newest_commit) == (8, 8)
    assert found.offsets(8).offsets == found.offsets(7).offsets
    assert found.watermark_after(8) == 1500
    assert found.files.is_file("state/0/0/1.delta")


@pytest.mark.parametrize("in_work_copy", [False, True])
def test_a_continued_commit_names_the_state_that_is_taken_back(tmp_path: Path, in_work_copy: bool) -> None:
    found = checkpoint(files_in(tmp_path), 7, 7)
    commit = 'v2\n{"nextBatchWatermarkMs":253402300799000,"stateUniqueIds":{"0":[["d8b4993b"]]}}'
    found.files.write(f"{JOURNAL.work if in_work_copy else '.'}/commits/8", commit)
    for _ in range(2):  # as after a crash in between
        seed(found.files, dataclasses.replace(JOURNAL, checkpoint_policy="Continue"))
        assert found.files.read("commits/8") == 'v2\n{"nextBatchWatermarkMs":1500,"stateUniqueIds":{"0":[["d8b4993b"]]}}'


@pytest.mark.parametrize(("retain", "left"), [(None, ["a", "b", "c"]), (2, ["b", "c"]), (0, []), (9, ["a", "b", "c"])])
def test_archives_are_pruned_oldest_first_and_never_what_stands_beside_them(tmp_path: Path, retain: int | None, left: list[str]) -> None:
    files = files_in(tmp_path)
    files.write("_drain/b/offsets/0", "")  # what a restore took away is a generation, too
    for archive in ("c", "a"):
        files.write(f"_drain/{archive}/metadata", "")
    for age, archive in enumerate(("a", "b", "c")):
        os.utime(tmp_path / "_drain" / archive, (1000 + age, 1000 + age))
    write_journal(files, JOURNAL)
    for beside in (*LEASE_FILES, "_drain/note", f"{EMPTY_STORE}/0/1.delta"):  # that of a first start that was killed is no archive
        files.write(beside, "")
    prune_archives(files, retain)
    assert files.names("_drain") == [*left, "empty-store", "journal", "lease", "lease-heartbeat", "note"]
