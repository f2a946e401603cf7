"""Files of the driver's own machine are handled without Hadoop's local filesystem, and Hadoop finds them as it would leave them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from spark_drain_agent.checkpoint import local_files
from spark_drain_agent.checkpoint.files import CheckpointFiles, CheckpointIOError
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.agent.warm import Warm

pytestmark = pytest.mark.spark


def by_spark(files: CheckpointFiles, name: str, text: str) -> None:
    """Write a file as Spark writes its logs: with a checksum."""
    files._fs.mkdirs(files._path(name).getParent())
    stream = files._replacing.createAtomic(files._path(name), False)
    stream.write(bytearray(text.encode()))
    stream.close()


@pytest.fixture
def files(warm: Warm, tmp_path: Path) -> CheckpointFiles:
    return CheckpointFiles(SparkInternals(warm.session), f"file:{tmp_path}/with space")


def listed_by_hadoop(files: CheckpointFiles, folder: str) -> list[str]:
    return sorted(file.name for file in files._named(files._all_below(folder)))


def test_what_is_listed_is_what_hadoop_lists(files: CheckpointFiles, tmp_path: Path) -> None:
    assert files.below("state") == []
    by_spark(files, "state/0/1/1.delta", "")
    by_spark(files, "state/0/_metadata/metadata", "v2")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/2.delta").write_text("")
    (tmp_path / "with space/state/1").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "with space/state/.hidden").write_text("")
    assert (tmp_path / "with space/state/0/1/.1.delta.crc").exists()
    assert files.below("state") == listed_by_hadoop(files, "state")
    assert files.below("state") == ["state/.hidden", "state/0/1/1.delta", "state/0/_metadata/metadata", "state/1/2.delta"]


def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state/0").mkdir(parents=True)
    scan = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("/0"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)  # root may read everything
    with pytest.raises(PermissionError):
        local_files.below(tmp_path / "state")


def test_a_file_that_cannot_be_looked_at_is_not_taken_for_a_missing_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "journal").write_text("{}")
    assert local_files.is_missing(tmp_path / "none")
    assert local_files.is_missing(tmp_path / "journal/none")
    assert not local_files.is_missing(tmp_path / "journal")

    def refuse(path: Path, **_: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)  # root may look at everything
    assert not local_files.is_missing(tmp_path / "journal")


@pytest.mark.parametrize("name", ["offsets/1", "offsets"])
def test_a_copy_is_read_with_its_checksums(files: CheckpointFiles, tmp_path: Path, name: str) -> None:
    by_spark(files, "offsets/1", "v1\n{}")
    files.copy(name, f"copied/{name}")
    assert files.read("copied/offsets/1") == "v1\n{}"
    assert (tmp_path / "with space/copied/offsets/.1.crc").exists()
    (tmp_path / "with space/copied/offsets/1").write_text("damaged")
    with pytest.raises(Exception, match="ChecksumException"):
        files.read("copied/offsets/1")


def test_what_was_written_has_replaced_what_spark_had_written(files: CheckpointFiles) -> None:
    by_spark(files, "metadata", "of Spark")
    files.write("metadata", "of the agent: é\r\n")
    assert files.read("metadata") == "of the agent: é\r\n"
    assert files.names("") == ["metadata"]


def test_a_file_in_the_way_of_a_folder_is_named(files: CheckpointFiles) -> None:
    files.write("offsets", "")
    with pytest.raises(CheckpointIOError, match=r"with space/offsets could not be created: does the driver have permission"):
        files.write("offsets/1", "")
