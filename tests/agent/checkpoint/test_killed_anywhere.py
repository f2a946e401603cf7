"""A drain that is killed before any change of its checkpoint, where folders are renamed and where they change object by object."""

from __future__ import annotations

import dataclasses
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from spark_drain_agent.checkpoint.archive import damage_of_archive
from spark_drain_agent.checkpoint.complete import Application, complete, prepare
from spark_drain_agent.checkpoint.fence import can_undo, fence, is_fence
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.flush import archive_beside_flush
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, read_journal, write_journal
from spark_drain_agent.checkpoint.logs import END_OF_TIME_MS, Checkpoint
from spark_drain_agent.checkpoint.restore import RestoreError, check_restorable, restore
from spark_drain_agent.checkpoint.undo import undo

from tests.agent.checkpoint.test_steps import COMMIT, JOURNAL, OFFSETS
from tests.agent.folder import files_in, killed_after

STATE = {f"state/0/{partition}/{version}.delta": f"{partition} {version}" for partition in (0, 1) for version in (7, 8)}
SCHEMAS = {"state/0/_stateSchema/default/0_1": "schema"}
STATE |= SCHEMAS
METADATA, NEW_SCHEMA = "state/0/_metadata/v2/8", "state/0/_stateSchema/default/8_2"
"""What a version writes in its first batch that has another variable than the one before."""
SOURCES = {"sources/0/0": "v1\nfirst offsets"}


Store = dict[str, bool]
STORES = pytest.mark.parametrize(
    "store",
    [
        pytest.param({}, id="folder"),
        pytest.param({"objects": True}, id="bucket", marks=pytest.mark.soak),
        pytest.param({"objects": True, "takes_by_moving": True}, id="bucket-with-much-state"),
    ],
)


def running(files: CheckpointFiles) -> None:
    """Make the checkpoint of a query whose batch 7 is committed."""
    for batch in range(8):
        files.write(f"offsets/{batch}", OFFSETS)
        files.write(f"commits/{batch}", COMMIT)
    for name, text in {**STATE, **SOURCES, "metadata": JOURNAL.metadata}.items():
        files.write(name, text)


class Version:
    """The application, whose flush needs the whole state."""

    def __init__(self, files: CheckpointFiles, journal: Journal) -> None:
        self._files, self._journal = files, journal
        self.flushed = 0

    @property
    def steps(self) -> Application:
        return Application(launch_once=self._launch_once, check_version=lambda _: None, export=lambda _: None)

    def _launch_once(self, uri: str) -> Any:
        self._flush(Checkpoint(self._files, self._journal.work))
        return SimpleNamespace(lastProgress={"stateOperators": []}, awaitTermination=lambda: None)

    def _flush(self, log: Checkpoint) -> None:
        found = {name: log.files.read(log.name(name)) for name in STATE}
        assert found == STATE, "the flush reads a part of the state"
        assert {name: log.files.read(name) for name in SCHEMAS} == SCHEMAS, "the state names its schemas by their whole path"
        log.files.write(log.name("state/0/0/9.delta"), "flushed")
        log.files.write(log.name(NEW_SCHEMA), "another schema")
        log.files.write(log.name(METADATA), log.files.uri(log.name(NEW_SCHEMA)))
        log.write_commit(8, END_OF_TIME_MS)
        self.flushed += 1

    def flush_in_place(self) -> None:
        """Do what a running query does of a drain."""
        live = Checkpoint(self._files)
        fence(self._files, self._journal)
        archive_beside_flush(self._files, self._journal)
        live.write_offsets(8, live.offsets(7).at(END_OF_TIME_MS, 2000))
        self._flush(live)


def drain(files: CheckpointFiles, version: Version, journal: Journal, *, in_place: bool) -> None:
    begun = prepare(files, journal)
    if in_place:
        version.flush_in_place()
    complete(files, begun, version.steps)


def go_on(files: CheckpointFiles, version: Version, journal: Journal) -> None:
    """Do what a restarted driver does while the drain is asked for."""
    begun = read_journal(files)
    if begun is None:
        drain(files, version, journal, in_place=False)
    elif not begun.over:
        complete(files, begun, version.steps)


def check_drained(files: CheckpointFiles, journal: Journal) -> None:
    live, archive = Checkpoint(files), Checkpoint(files, journal.work)
    assert not is_fence(live.metadata)
    assert {name: files.read(name) for name in SOURCES} == SOURCES
    if journal.checkpoint_policy == "Continue":
        assert live.offsets(8).watermark_ms == live.watermark_after(8) == JOURNAL.watermark_ms
        assert {name: files.read(name) for name in STATE} == STATE
        assert files.read(NEW_SCHEMA) == "another schema"
        assert journal.work not in str(files.read(METADATA))
        assert str(files.read(METADATA)).endswith(f"/{NEW_SCHEMA}")
        return
    assert files.names("offsets") == ["-1", "-2"]
    assert files.names("commits") == ["-1"]
    assert live.offsets(-1).watermark_ms == live.watermark_after(-1) == JOURNAL.watermark_ms
    assert not files.names("state")
    assert {name: files.read(archive.name(name)) for name in {**STATE, **SOURCES}} == {**STATE, **SOURCES}
    assert archive.metadata == journal.metadata
    assert damage_of_archive(files, journal) == []


@STORES
@pytest.mark.parametrize("policy", ["Reseed", "Continue"])
@pytest.mark.parametrize("in_place", [True, False], ids=["in-place", "work-copy"])
def test_killed_anywhere(in_place: bool, policy: str, store: Store, tmp_path: Path) -> None:
    journal = dataclasses.replace(JOURNAL, checkpoint_policy=policy)
    undone = changes = 0
    while True:
        files = files_in(tmp_path / f"{changes}", **store)
        running(files)
        version = Version(files, journal)
        with killed_after(changes, files) as killed:
            drain(files, version, journal, in_place=in_place)
        begun = read_journal(files)
        if begun is not None and can_undo(files, begun) and killed:
            _check_undone(tmp_path / f"{changes}", journal, store)
            undone += 1
        _go_on_killed_again(tmp_path / f"{changes}", journal, store)
        go_on(files, version, journal)
        check_drained(files, journal)
        assert version.flushed >= 1
        if not killed:
            break
        changes += 1
    assert changes > 10
    assert undone > 2


def _copy_of(base: Path, name: str, store: Store) -> CheckpointFiles:
    shutil.copytree(base, base.with_name(f"{base.name}-{name}"))
    return files_in(base.with_name(f"{base.name}-{name}"), **store)


def _check_undone(base: Path, journal: Journal, store: Store) -> None:
    """Take the drain back, killed again at each change: the version that was drained finds all that it had."""
    changes = 0
    while True:
        files = _copy_of(base, f"undone-{changes}", store)
        begun = read_journal(files)
        assert begun is not None
        with killed_after(changes, files) as killed:
            undo(files, begun)
        begun = read_journal(files)
        assert begun is not None
        undo(files, begun)
        live = Checkpoint(files)
        assert live.metadata == journal.metadata
        assert (live.newest_offsets, live.newest_commit) == (7, 7)
        assert {name: files.read(name) for name in {**STATE, **SOURCES}} == {**STATE, **SOURCES}
        if not killed:
            return
        changes += 1


def _go_on_killed_again(base: Path, journal: Journal, store: Store) -> None:
    """Kill the driver that goes on, too, at some changes, and the next one ends the drain."""
    for changes in (0, 3, 8):
        files = _copy_of(base, f"again-{changes}", store)
        with killed_after(changes, files):
            go_on(files, Version(files, journal), journal)
        go_on(files, Version(files, journal), journal)
        check_drained(files, journal)


@STORES
def test_an_archive_is_put_back_whole_wherever_that_is_killed(store: Store, tmp_path: Path) -> None:
    changes = 0
    while True:
        files = files_in(tmp_path / f"{changes}", **store)
        running(files)
        drain(files, Version(files, JOURNAL), JOURNAL, in_place=False)
        for name, text in {"offsets/0": OFFSETS, "state/0/0/1.delta": "next", "state/0/1/8.delta": "next"}.items():
            files.write(name, text)
        with killed_after(changes, files) as killed:
            _go_back(files)
        begun = read_journal(files)
        assert begun is not None
        if begun.step is not JournalStep.UNDONE:
            _go_back(files)
        live = Checkpoint(files)
        assert live.metadata == JOURNAL.metadata
        assert (live.newest_offsets, live.newest_commit) == (7, 7)
        assert {name: files.read(name) for name in {**STATE, **SOURCES}} == {**STATE, **SOURCES}
        assert files.below("state") == sorted(STATE)
        if not killed:
            break
        changes += 1
    assert changes > 10


def _go_back(files: CheckpointFiles) -> None:
    restore(files, check_restorable(files, read_journal(files), discard_newer=True, accept_reuse=True))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("state/0/1/8.delta", None),
        ("state/0/1/8.delta", ""),
        ("offsets/7", ""),
        ("offsets/7", "as long as before"),
        ("commits/7", None),
        ("offsets/9", "of a later generation"),
        ("metadata", "{"),
        ("sizes", None),
        ("sizes", "1 - metadata"),
    ],
)
def test_a_damaged_archive_is_not_put_back_in_part(tmp_path: Path, name: str, text: str | None) -> None:
    files = files_in(tmp_path)
    running(files)
    drain(files, Version(files, JOURNAL), JOURNAL, in_place=True)
    whole = f"{JOURNAL.work}/{name}"
    if text is None:
        files.delete(whole)
    else:
        files.write(whole, (files.read(whole) or "").replace("1", "2") if text == "as long as before" else text)
    before = files.below("")
    damage = f"1 of its files are missing or not as they were, the first of them {name}: take them back from a backup"
    with pytest.raises(RestoreError, match=re.escape(damage)):
        _go_back(files)
    assert files.below("") == before


def test_what_spark_was_writing_is_no_part_of_an_archive(tmp_path: Path) -> None:
    """Its maintenance thread uploads snapshots at any time, and takes their temporary names away when it is done."""
    files, unfinished = files_in(tmp_path), "state/0/0/.9.zip.49389548-d548-4b2b-bcb7-05a39c095da8.tmp"
    running(files)
    files.write(unfinished, "a half")
    drain(files, Version(files, JOURNAL), JOURNAL, in_place=True)
    assert files.read(f"{JOURNAL.work}/{unfinished}") == "a half", "it was moved with the others"
    files.delete(f"{JOURNAL.work}/{unfinished}")
    _go_back(files)
    assert files.read("state/0/1/8.delta") == STATE["state/0/1/8.delta"]


@pytest.mark.parametrize("text", [None, "whole"], ids=["removed", "written-to-its-end"])
@pytest.mark.parametrize(
    "name", ["state/0/0/SSTs/000021-a.sst", "state/0/0/9.zip", "state/0/1/5.delta"], ids=["table-of-no-snapshot", "newer", "older"]
)
def test_an_archive_is_whole_without_files_that_its_state_is_not_made_of(tmp_path: Path, name: str, text: str | None) -> None:
    """Spark's maintenance thread writes the tables of a snapshot before the snapshot, and removes what no version needs."""
    files = files_in(tmp_path)
    _with_snapshots(files)
    files.write(name, "a half")
    drain(files, Version(files, JOURNAL), JOURNAL, in_place=True)
    archived = f"{JOURNAL.work}/{name}"
    if text is None:
        files.delete(archived)
    else:
        files.write(archived, text)
    _go_back(files)
    assert files.read("state/0/1/8.delta") == STATE["state/0/1/8.delta"]
    assert files.read("state/0/0/SSTs/000020-b.sst") == "a table"


@pytest.mark.parametrize("name", ["state/0/0/SSTs/000020-b.sst", "state/0/0/8.zip"])
def test_an_archive_is_damaged_without_a_table_of_its_snapshot(tmp_path: Path, name: str) -> None:
    files = files_in(tmp_path)
    _with_snapshots(files)
    drain(files, Version(files, JOURNAL), JOURNAL, in_place=True)
    files.delete(f"{JOURNAL.work}/{name}")
    with pytest.raises(RestoreError, match=re.escape(f"the first of them {name}")):
        _go_back(files)


def _with_snapshots(files: CheckpointFiles) -> None:
    """Let the store of one partition be RocksDB's, with a snapshot made of one table; the other one's last whole version is 6."""
    running(files)
    files.write("state/0/1/6.snapshot", "all until 6")
    files.write("state/0/0/SSTs/000020-b.sst", "a table")
    with zipfile.ZipFile(Path(files.root) / "state/0/0/8.zip", "w") as snapshot:
        snapshot.writestr("metadata", 'v1\n{"sstFiles":[{"localSstName":"000020.sst","dfsSstName":"000020-b.sst","sizeBytes":7}]}')


def test_an_archive_of_an_older_agent_is_looked_at_by_its_names(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    running(files)
    drain(files, Version(files, JOURNAL), JOURNAL, in_place=True)
    journal = read_journal(files)
    assert journal is not None
    names = [name.removeprefix(f"{journal.work}/") for name in files.below(journal.work)]
    files.write(f"{journal.work}/contents", "\n".join(names))
    files.delete(f"{journal.work}/sizes")
    write_journal(files, replace(journal, archive=""))
    with pytest.raises(RestoreError, match=r"1 of its files .* sizes"):
        _go_back(files)
    files.write(f"{journal.work}/contents", "\n".join(name for name in names if name != "sizes"))
    _go_back(files)
