"""A file that is replaced is there all the time, whole: a process may be killed at any moment."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest
from spark_drain_agent.checkpoint import local_files
from spark_drain_agent.checkpoint.files import CheckpointFiles, CheckpointIOError
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.agent.checkpoint.test_local_files import by_spark
from tests.agent.warm import Warm
from tests.support.lease_race import race

pytestmark = pytest.mark.spark

TEXTS = ["old\n" * 50, "new\n" * 5000]


def files_of(warm: Warm, root: str) -> CheckpointFiles:
    return CheckpointFiles(SparkInternals(warm.session), root)


def test_a_file_that_is_replaced_is_there_all_the_time(warm: Warm, tmp_path: Path) -> None:
    files, target = files_of(warm, f"file:{tmp_path}"), tmp_path / "metadata"
    files.write("metadata", TEXTS[0])
    seen: set[str] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            try:
                seen.add(target.read_text())
            except FileNotFoundError:
                seen.add("no file")

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for number in range(200):
            files.write("metadata", TEXTS[number % 2])
    finally:
        over.set()
        looking.join()
    assert seen <= set(TEXTS)
    assert [path.name for path in tmp_path.iterdir()] == ["metadata"]


def test_what_spark_has_written_is_replaced_with_its_checksum(warm: Warm, tmp_path: Path) -> None:
    files = files_of(warm, f"file:{tmp_path}")
    by_spark(files, "metadata", "of Spark")
    assert (tmp_path / ".metadata.crc").exists()
    files.write("metadata", "of the agent")
    assert files.read("metadata") == "of the agent"


def test_a_folder_that_cannot_be_written_to_is_named(warm: Warm, tmp_path: Path) -> None:
    (tmp_path / "metadata" / "a-folder-in-the-way").mkdir(parents=True)
    with pytest.raises(CheckpointIOError, match="metadata could not be replaced"):
        files_of(warm, f"file:{tmp_path}").write("metadata", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["metadata"]


def test_a_new_file_that_cannot_be_filled_is_not_left_empty(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty lease would be waited for, as that of a driver that may be alive."""

    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(local_files, "replace", full)
    with pytest.raises(CheckpointIOError, match=r"lease could not be replaced: No space left on device$"):
        files_of(warm, f"file:{tmp_path}").write_if("lease", "text", None)
    assert not list(tmp_path.iterdir())


def test_of_drivers_that_find_no_lease_one_has_it(warm: Warm, tmp_path: Path) -> None:
    assert race(lambda folder: files_of(warm, f"file:{tmp_path}/{folder}")) == [1] * 5


@pytest.mark.parametrize(("delay", "tries", "expected"), [(None, None, (10, 10)), (50, None, (50, 5)), (None, 3, (400, 3))])
def test_an_hdfs_client_that_nobody_has_configured_closes_small_files_without_a_long_sleep(
    warm: Warm, monkeypatch: pytest.MonkeyPatch, delay: int | None, tries: int | None, expected: tuple[int, int]
) -> None:
    name = "dfs.client.block.write.locateFollowingBlock"
    internals = SparkInternals(warm.session)
    conf = internals.hadoop_conf()
    for part, value in (("initial.delay.ms", delay), ("retries", tries)):
        if value is not None:
            conf.setInt(f"{name}.{part}", value)
    monkeypatch.setattr(internals, "hadoop_conf", lambda: conf)
    used = CheckpointFiles(internals, "file:/tmp")._conf
    assert (used.getInt(f"{name}.initial.delay.ms", 400), used.getInt(f"{name}.retries", 5)) == expected


class LeaseLostError(Exception):
    pass


def test_a_driver_that_loses_its_lease_in_the_middle_of_many_changes_leaves_the_rest(warm: Warm, tmp_path: Path) -> None:
    files, names = files_of(warm, f"file:{tmp_path}"), [f"{number}.delta" for number in range(60)]
    files.write_all({f"state/{name}": name for name in names})
    allowed = iter(range(10))

    def check() -> None:
        if next(allowed, None) is None:
            raise LeaseLostError

    files.check_before_change = check
    with pytest.raises(LeaseLostError):
        files.merge("state", "work", names)
    assert len(files.below("work")) < 10
    with pytest.raises(LeaseLostError):
        files.write_all({f"offsets/{name}": name for name in names})
    assert files.below("offsets") == []


def test_what_another_driver_has_moved_stays_where_it_is(warm: Warm, tmp_path: Path) -> None:
    files = files_of(warm, f"file:{tmp_path}")
    files.write_all({"state/1.delta": "first", "work/1.delta": "interrupted", "work/2.delta": "moved by the other one"})
    with pytest.raises((CheckpointIOError, *JavaError)):
        files.merge("state", "work", ["1.delta", "2.delta"])
    assert {name: files.read(name) for name in files.below("")} == {"work/1.delta": "first", "work/2.delta": "moved by the other one"}


def test_files_below_a_folder_have_any_names(warm: Warm, tmp_path: Path) -> None:
    names = ["state/0/1.delta", "state/0/a; isDirectory=b", "state/ü, {path=c}/d #%41"]
    for name in names:
        (tmp_path / "a checkpoint" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "a checkpoint" / name).write_text("")
    files = files_of(warm, f"file:{tmp_path}/a checkpoint")
    assert files.below("state") == names
    assert files.below("commits") == []
