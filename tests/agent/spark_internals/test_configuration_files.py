"""Configuration files count by their content, on disk and within a zip file of modules, as --py-files takes them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from spark_drain_agent.spark_internals.application_modules import sources
from spark_drain_agent.spark_internals.configuration_files import configuration_files

MODULE = 'import pkgutil\nRULES = pkgutil.get_data("zipped_rules", "rules.yaml")\nMISSING = "missing.yaml"\n'


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return zipped(tmp_path / "first.zip", "shift: 0")


def zipped(path: Path, rules: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("zipped_rules/__init__.py", "")
        archive.writestr("zipped_rules/times.py", MODULE)
        archive.writestr("zipped_rules/rules.yaml", rules)
    return path


def test_a_file_within_a_zip_file_counts(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(archive)
    first = {*sources(["zipped_rules.times"], ())}
    monkeypatch.syspath_prepend(zipped(tmp_path / "same.zip", "shift: 0"))
    assert {*sources(["zipped_rules.times"], ())} == first
    monkeypatch.syspath_prepend(zipped(tmp_path / "other.zip", "shift: 8"))
    other = {*sources(["zipped_rules.times"], ())}
    assert [line.partition(" ")[0] for line in sorted(first ^ other)] == ["rules.yaml", "rules.yaml"]


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06"])
def test_what_is_no_archive_does_not_matter(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert [*configuration_files(["rules.yaml", "\0.yaml"], [tmp_path / "file", tmp_path / "missing.zip/folder"])] == []


@pytest.mark.skipif(not Path("/etc/resolv.conf").is_file(), reason="a machine without name servers")
def test_the_name_servers_of_a_node_do_not_count() -> None:
    assert [*configuration_files(["/etc/resolv.conf"], [])] == []


def test_a_file_that_has_changed_since_it_was_first_looked_at_counts_as_unknown(tmp_path: Path) -> None:
    """The program may have read it before the change, or after."""
    path = tmp_path / "settings.yaml"
    path.write_text("table: a")
    first = [*configuration_files(["settings.yaml"], [tmp_path])]
    assert [*configuration_files(["settings.yaml"], [tmp_path])] == first
    path.write_text("table: b")
    assert [*configuration_files(["settings.yaml"], [tmp_path])] != [*configuration_files(["settings.yaml"], [tmp_path])]
