"""The first start of a generation without state: when there is something to do, what is done, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spark_drain_agent.checkpoint.empty_state import EmptyStateError, NextVersion, OtherVersionError, begin_generation
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, read_journal
from spark_drain_agent.checkpoint.logs import Checkpoint, OffsetEntry
from spark_drain_agent.spark_internals.state_stores import STATE_FORMAT, EmptyStore, OperatorStores

from tests.agent.checkpoint.test_steps import JOURNAL, OFFSETS
from tests.agent.folder import files_in

SOURCES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
DONE = replace(JOURNAL, step=JournalStep.DONE, first_batch_id=9)
JOIN = OperatorStores(1, "StreamingSymmetricHashJoinExec", 2, ("left", "right"), initial_state=False)
AGGREGATION = OperatorStores(0, "StateStoreSaveExec", 1, ("default",), initial_state=False)


def version(
    files: CheckpointFiles,
    *stores: OperatorStores,
    fingerprint: str = "v2",
    running: bool = False,
    watermarks: tuple[str, ...] = (),
    taken: bool | None = False,
    same: bool = False,
    sink: str = "file:/out",
    elsewhere: bool | None = False,
) -> NextVersion:
    def make_empty(confs: Mapping[str, str], folder: str) -> EmptyStore:
        assert confs["a"] == "new"
        name = folder.removeprefix(f"{files.uri('')}/")
        files.write(f"{name}/0/0/1.delta", "nothing")
        return EmptyStore(f"{folder}/0/0/1.delta", "snapshot")

    return NextVersion(
        fingerprint,
        watermarks,
        lambda: running,
        lambda: {"a": "new", SOURCES: "new"},
        lambda metadata: stores if json.loads(metadata)["conf"]["a"] == "new" else (),
        make_empty,
        sink,
        lambda asked, _: taken if asked == sink else elsewhere,
        same,
    )


def seeded(folder: Path, first: int, *, planned: bool = False) -> Checkpoint:
    found = Checkpoint(files_in(folder))
    entry = OffsetEntry.parse("offsets", OFFSETS).with_confs({"a": "old", SOURCES: "old"})
    for number in (first - 2, first - 1, *([first] if planned else [])):
        found.write_offsets(number, entry)
    found.write_commit(first - 1, 1500)
    found.files.write("state/0/0/3.zip", "uploaded late")
    return found


@pytest.mark.parametrize("planned", [False, True], ids=["never started", "its first batch was not committed"])
def test_every_store_of_the_version_that_starts_is_empty(tmp_path: Path, planned: bool) -> None:
    found = seeded(tmp_path, 9, planned=planned)
    for _ in range(2):
        begin_generation(found.files, DONE, version(found.files, AGGREGATION, JOIN))
        text = found.files.read("state/0/0/9.snapshot")
        found.files.write("state/0/0/9.snapshot", "uploaded late")
    found.files.write("state/0/0/9.snapshot", str(text))
    made = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert made == ["state/0/0/9.snapshot", *(f"state/1/{part}/{side}/9.snapshot" for part in (0, 1) for side in ("left", "right"))]
    assert not found.files.is_folder("_drain/empty-store")
    assert found.newest_offsets == (9 if planned else 8)
    for number in range(7, 10 if planned else 9):
        assert found.offsets(number).metadata["conf"] == {"a": "new", SOURCES: "old"}
        assert found.offsets(number).offsets == OffsetEntry.parse("", OFFSETS).offsets


@pytest.mark.parametrize(
    ("journal", "committed", "prepared"),
    [
        (DONE, 8, True),
        (DONE, 9, False),
        (replace(DONE, step=JournalStep.SEEDED), 8, False),
        (replace(DONE, step=JournalStep.UNDONE), 8, False),
        (replace(DONE, checkpoint_policy="Continue"), 8, False),
        (replace(DONE, checkpoint_policy="Continue", flushes=False), 8, True),
        (replace(DONE, checkpoint_policy="Keep"), 8, False),
        (replace(DONE, first_batch_id=0), -1, True),
        (replace(DONE, first_batch_id=0), 0, False),
    ],
)
def test_only_a_generation_without_state_and_without_a_batch_is_prepared(
    tmp_path: Path, journal: Journal, committed: int, prepared: bool
) -> None:
    found = seeded(tmp_path, journal.first_batch_id)
    found.write_commit(committed, 1500)
    begin_generation(found.files, journal, version(found.files))
    assert found.files.is_folder("state") is not prepared


@pytest.mark.parametrize(
    ("taken", "told"),
    [
        (False, ""),
        (None, r"only the sink knows: if it has not, remove .*/offsets/0 and start again; if it has, write .*/commits/0 of two lines"),
        (True, r"when the sink had taken it: write .*/commits/0 of two lines"),
    ],
)
def test_a_batch_0_that_was_not_committed(tmp_path: Path, taken: bool | None, told: str) -> None:
    """Spark would repeat it from the sources' beginning; a sink that has taken it would pass over one with other records."""
    found = seeded(tmp_path, 0, planned=True)
    journal = replace(DONE, first_batch_id=0)
    if told:
        with pytest.raises(EmptyStateError, match=told):
            begin_generation(found.files, journal, version(found.files, taken=taken))
        assert found.newest_offsets == 0
    else:
        begin_generation(found.files, journal, version(found.files, taken=taken))
        assert found.newest_offsets == -1


def test_a_batch_0_whose_commit_names_its_state_is_not_to_be_committed_by_hand(tmp_path: Path) -> None:
    found = seeded(tmp_path, 0, planned=True)
    begins = replace(version(found.files, taken=None), confs=lambda: {"a": "new", STATE_FORMAT: "2"})
    with pytest.raises(EmptyStateError, match="if it has, start with another checkpointLocation"):
        begin_generation(found.files, replace(DONE, first_batch_id=0), begins)


@pytest.mark.parametrize(
    ("batch_ids", "way_out"),
    [("UNKNOWN", "resume --from archive {root}` and drain again"), ("REMEMBERED", "first batch is 9: start without an initial state")],
)
def test_an_initial_state_is_not_passed_over(tmp_path: Path, batch_ids: str, way_out: str) -> None:
    found = seeded(tmp_path, 9)
    transform = OperatorStores(0, "TransformWithStateInPySparkExec", 1, ("default",), initial_state=True)
    with pytest.raises(EmptyStateError, match="batch 0 only") as refused:
        begin_generation(found.files, replace(DONE, batch_ids=batch_ids), version(found.files, transform))
    assert way_out.format(root=found.files.root) in str(refused.value)
    assert found.files.is_file("state/0/0/3.zip")
    assert found.offsets(8).metadata["conf"]["a"] == "old"


@pytest.mark.parametrize(
    ("before", "now", "watermark"),
    [
        (("at 12 seconds",), ("at 12 seconds",), 1500),
        (("at 12 seconds",), ("at 1 hours",), 0),
        (("at 12 seconds",), ("booked 12 seconds",), 0),
        (("at 12 seconds",), ("at 12 seconds", "booked 12 seconds"), 0),
        (None, ("booked 12 seconds",), 1500),
    ],
)
def test_a_watermark_of_another_kind_begins_anew(
    tmp_path: Path, before: tuple[str, ...] | None, now: tuple[str, ...], watermark: int
) -> None:
    """What the version before would have dropped as late may be on time in another column."""
    found, journal = seeded(tmp_path, 9), replace(DONE, watermarks=before)
    begin_generation(found.files, journal, version(found.files, watermarks=("other",)))
    begin_generation(found.files, journal, version(found.files, watermarks=now))
    assert found.offsets(8).watermark_ms == watermark
    assert found.watermark_after(8) == watermark


def test_what_is_late_to_the_first_batch_stays(tmp_path: Path) -> None:
    """Also after a version whose event time is another one; what the first batch emits is up to the newer watermark."""
    found, journal = seeded(tmp_path, 9), replace(DONE, watermarks=("at 12 seconds",), late_ms=1000)
    begin_generation(found.files, journal, version(found.files, watermarks=("other",)))
    begin_generation(found.files, journal, version(found.files, watermarks=("at 12 seconds",)))
    assert (found.offsets(8).watermark_ms, found.watermark_after(8)) == (1000, 1500)


def journal_in(found: Checkpoint) -> Journal:
    journal = read_journal(found.files)
    assert journal is not None
    return journal


def test_the_owners_word_counts_for_each_start_until_the_batch_is_committed(tmp_path: Path) -> None:
    """A driver that is killed again is started again with the same confs, and has another plan each time."""
    found = seeded(tmp_path, 9)
    begin_generation(found.files, DONE, version(found.files, AGGREGATION))
    found.write_offsets(9, found.offsets(8))
    named = journal_in(found).begun_by
    for fingerprint in ("v3", "v4"):
        begin_generation(found.files, journal_in(found), version(found.files, AGGREGATION, fingerprint=fingerprint, same=True))
        assert journal_in(found).begun_by == named


def test_a_second_start_leaves_the_state_of_the_first_one_alone(tmp_path: Path) -> None:
    """Its first batch is running: what its tasks have written would be gone, and the commit of the batch there."""
    found = seeded(tmp_path, 9)
    begin_generation(found.files, DONE, version(found.files, AGGREGATION))
    found.files.write("state/0/0/10.delta", "of the batch that is running")
    begin_generation(found.files, journal_in(found), version(found.files, AGGREGATION, running=True))
    assert found.files.is_file("state/0/0/10.delta")


@pytest.mark.parametrize("confs", [{}, {"a": "newer"}], ids=["as before", "other confs of the session"])
def test_the_state_of_an_interrupted_first_batch_stays(tmp_path: Path, confs: dict[str, str]) -> None:
    """A sink that has taken the batch passes over it when it is repeated: no task writes its state then."""
    found = seeded(tmp_path, 9)
    begin_generation(found.files, DONE, version(found.files, AGGREGATION))
    found.write_offsets(9, found.offsets(8))
    found.files.write("state/0/0/10.delta", "of the batch that was interrupted")
    found.files.write("state/0/0/SSTs/1-0a.sst", "of its snapshot")
    for late in ("state/0/0/9.snapshot", "state/0/0/8.zip"):
        found.files.write(late, "uploaded late")
    again = version(found.files, AGGREGATION, taken=True)
    for _ in range(2):
        begin_generation(found.files, journal_in(found), replace(again, confs=lambda: {**again.confs(), **confs}))
    assert found.files.below("state") == ["state/0/0/10.delta", "state/0/0/9.snapshot", "state/0/0/SSTs/1-0a.sst"]
    assert found.files.read("state/0/0/9.snapshot") == "nothing"


def test_another_version_does_not_repeat_a_batch_that_the_sink_has_taken(tmp_path: Path) -> None:
    found = seeded(tmp_path, 9)
    begin_generation(found.files, DONE, version(found.files, AGGREGATION))
    found.write_offsets(9, found.offsets(8))
    found.files.write("state/0/0/10.delta", "of the batch that was interrupted")
    with pytest.raises(EmptyStateError, match="the sink had taken batch 9, which would be passed over: start that version"):
        begin_generation(found.files, journal_in(found), version(found.files, AGGREGATION, fingerprint="v3", taken=True))
    assert found.files.is_file("state/0/0/10.delta")
    begin_generation(found.files, journal_in(found), version(found.files, AGGREGATION, fingerprint="v3"))
    assert not found.files.is_file("state/0/0/10.delta")


@pytest.mark.parametrize("written", ["state/0/0/10.delta", "state/1/0/left/10.changelog", "state/0/1/10.zip", ""])
def test_another_version_does_not_repeat_a_batch_that_the_sink_may_have_taken(tmp_path: Path, written: str) -> None:
    """Delta passes over a batch that it has; tasks write the state before it is asked."""
    found = seeded(tmp_path, 9)
    begin_generation(found.files, DONE, version(found.files, AGGREGATION))
    found.write_offsets(9, found.offsets(8))
    if written:
        found.files.write(written, "of the batch that was interrupted")
        with pytest.raises(EmptyStateError, match="which the sink may have taken and would then pass over: start that version") as caught:
            begin_generation(found.files, journal_in(found), version(found.files, AGGREGATION, fingerprint="v3", taken=None))
        assert f"remove {found.files.uri('offsets/9')} and start again" in str(caught.value)
        assert found.files.is_file(written)
        begin_generation(found.files, journal_in(found), version(found.files, AGGREGATION, taken=None))
        assert found.files.is_file(written)
        found.files.delete("offsets/9")
    begin_generation(found.files, journal_in(found), version(found.files, AGGREGATION, fingerprint="v3", taken=None))
    assert not (written and found.files.is_file(written))


@pytest.mark.parametrize("taken", [True, None])
@pytest.mark.parametrize("stores", [[], [AGGREGATION]], ids=["without state", "with state"])
def test_a_version_whose_plan_is_another_one_in_each_start(tmp_path: Path, stores: list[OperatorStores], taken: bool | None) -> None:
    """Without state it goes on, as in plain Spark; with state its owner has to say that it is the same one."""
    found = seeded(tmp_path, 9)
    begin_generation(found.files, DONE, version(found.files, *stores))
    found.write_offsets(9, found.offsets(8))
    if stores:
        found.files.write("state/0/0/10.delta", "of the batch that was interrupted")
        with pytest.raises(OtherVersionError):
            begin_generation(found.files, journal_in(found), version(found.files, *stores, fingerprint="later", taken=taken))
    begin_generation(found.files, journal_in(found), version(found.files, *stores, fingerprint="later", taken=taken, same=bool(stores)))
    assert found.files.is_file("state/0/0/10.delta") is bool(stores)


@pytest.mark.parametrize(("batch_ids", "advised"), [("BY_QUERY", True), ("UNKNOWN", False), ("REMEMBERED", False)])
def test_going_back_is_advised_where_it_is_allowed(tmp_path: Path, batch_ids: str, advised: bool) -> None:
    found = seeded(tmp_path, 9)
    begin_generation(found.files, replace(DONE, batch_ids=batch_ids), version(found.files, AGGREGATION))
    found.write_offsets(9, found.offsets(8))
    found.files.write("state/0/0/10.delta", "of the batch that was interrupted")
    with pytest.raises(OtherVersionError) as caught:
        begin_generation(found.files, journal_in(found), version(found.files, AGGREGATION, fingerprint="v3", taken=None))
    assert ("resume --from archive --discard-newer" in str(caught.value)) is advised


@pytest.mark.parametrize("late", ["", "state/0/0/8.zip"])
@pytest.mark.parametrize(
    ("stores", "taken", "refused"),
    [([AGGREGATION], None, True), ([AGGREGATION], False, False), ([], None, False)],
    ids=["with state", "sink without memory", "without state"],
)
def test_another_version_after_one_without_state(
    tmp_path: Path, stores: list[OperatorStores], taken: bool | None, refused: bool, late: str
) -> None:
    """Where the sink passes over the batch no task writes state, which all later batches need; of the batch before nothing tells."""
    found = seeded(tmp_path, 9)
    begin_generation(found.files, DONE, version(found.files))
    found.write_offsets(9, found.offsets(8))
    if late:
        found.files.write(late, "uploaded late")
    next_version = version(found.files, *stores, fingerprint="v3", taken=taken)
    if refused:
        with pytest.raises(EmptyStateError, match="which the sink may have taken and would then pass over: start that version"):
            begin_generation(found.files, journal_in(found), next_version)
        begin_generation(found.files, journal_in(found), version(found.files, taken=taken))
        found.files.delete("offsets/9")
    begin_generation(found.files, journal_in(found), next_version)
    assert found.files.is_file("state/0/0/9.snapshot") is bool(stores)


@pytest.mark.parametrize("milestone", ["confs-renewed", "late-state-cleared"])
def test_a_version_without_state_that_is_stopped_in_its_start_hides_nothing_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, milestone: str
) -> None:
    found = seeded(tmp_path, 9)
    begin_generation(found.files, DONE, version(found.files))
    found.write_offsets(9, found.offsets(8))
    with monkeypatch.context() as patched:
        patched.setattr("spark_drain_agent.checkpoint.empty_state.reached", killed_at(milestone))
        with pytest.raises(KeyboardInterrupt, match=milestone):
            begin_generation(found.files, journal_in(found), version(found.files, fingerprint="v3", taken=None))
    with pytest.raises(EmptyStateError, match="which the sink may have taken and would then pass over: start that version"):
        begin_generation(found.files, journal_in(found), version(found.files, AGGREGATION, fingerprint="v4", taken=None))
    begin_generation(found.files, journal_in(found), version(found.files, fingerprint="v5", taken=None))


def killed_at(milestone: str) -> Callable[[str], None]:
    def killed(name: str) -> None:
        if name == milestone:
            raise KeyboardInterrupt(name)

    return killed


def test_a_version_after_a_start_without_the_agent(tmp_path: Path) -> None:
    """That fails before the sink has taken anything, for want of state."""
    found = seeded(tmp_path, 9, planned=True)
    begin_generation(found.files, DONE, version(found.files, AGGREGATION, taken=None))
    assert found.files.is_file("state/0/0/9.snapshot")


def test_another_version_does_not_take_the_state_of_one_that_runs(tmp_path: Path) -> None:
    found = seeded(tmp_path, 9)
    begin_generation(found.files, DONE, version(found.files, AGGREGATION))
    with pytest.raises(EmptyStateError, match="is running its first batch"):
        begin_generation(found.files, journal_in(found), version(found.files, JOIN, running=True))
    assert found.files.is_file("state/0/0/9.snapshot")


@pytest.mark.parametrize("changes", [{"fingerprint": "v3"}, {"stores": [JOIN]}], ids=["another plan", "other stores"])
def test_what_another_version_left_is_cleared(tmp_path: Path, changes: dict[str, Any]) -> None:
    found = seeded(tmp_path, 9)
    begin_generation(found.files, DONE, version(found.files, AGGREGATION))
    found.files.write("state/0/0/_metadata/schema", "of a version that got no further")
    next_version = version(found.files, *changes.get("stores", [AGGREGATION]), fingerprint=changes.get("fingerprint", "v2"))
    begin_generation(found.files, journal_in(found), next_version)
    assert not found.files.is_file("state/0/0/_metadata/schema")


def test_a_stop_while_another_version_is_prepared_leaves_nothing_of_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The confs are those of the third version then: the second one must not take the state for its own."""
    found = seeded(tmp_path, 9)
    begin_generation(found.files, DONE, version(found.files, AGGREGATION))
    monkeypatch.setattr("spark_drain_agent.checkpoint.empty_state.reached", killed_at("confs-renewed"))
    with pytest.raises(KeyboardInterrupt, match="confs-renewed"):
        begin_generation(found.files, journal_in(found), version(found.files, JOIN, fingerprint="v3"))
    assert journal_in(found).begun_by == ""


@pytest.mark.parametrize(
    ("elsewhere", "told"),
    [
        (True, "when its sink, file:/first, had taken batch 9, which this one would write once more, to file:/second: "),
        (
            None,
            "file:/first, may have taken, and which this one would write once more, to file:/second: .*remove file:.*/offsets/9 and",
        ),
    ],
)
def test_what_the_sink_of_the_interrupted_version_has_taken_is_not_written_to_another_one(
    tmp_path: Path, elsewhere: bool | None, told: str
) -> None:
    found = seeded(tmp_path, 9)
    begin_generation(found.files, DONE, version(found.files, fingerprint="v2", sink="file:/first"))  # without state
    found.write_offsets(9, found.offsets(8))
    journal = read_journal(found.files)
    assert journal is not None
    assert journal.begun_sink == "file:/first"
    for stores, same in (((), False), ((AGGREGATION,), False), ((), True)):
        other = version(found.files, *stores, fingerprint="v3", sink="file:/second", elsewhere=elsewhere, same=same)
        with pytest.raises(EmptyStateError, match=told):
            begin_generation(found.files, journal, other)
    begin_generation(found.files, journal, version(found.files, fingerprint="v2", sink="file:/first", taken=True))
