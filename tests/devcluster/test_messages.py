"""What people are told when something is missing or wrong."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster import cli, clusters, gobuild, machine
from devcluster.clusters import find
from devcluster.errors import DevclusterError, MissingPrerequisiteError
from devcluster.gobuild import GoModule
from devcluster.images.loading import recipe_for
from devcluster.paths import REPOSITORY, cluster_dir


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    monkeypatch.setenv("GOCACHE", os.environ.get("GOCACHE") or f"{mine}/go-build")  # else Go's own library is compiled for each test
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", ["", "Upper", "a/b", "../x", "-a", "a-", "x" * 33, "a b"])
def test_names_that_cannot_be_cgroups_and_contexts(name: str) -> None:
    with pytest.raises(DevclusterError, match="lower case letters, digits and inner dashes"):
        cluster_dir(name)


@pytest.mark.parametrize("name", ["a", "e2e", "x" * 32, "spark-drain-2"])
def test_names_that_can(name: str) -> None:
    assert cluster_dir(name).name == name


def test_go_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devcluster.gobuild.shutil.which", lambda _program: None)
    with pytest.raises(MissingPrerequisiteError, match=r"`go` was not found: install Go 1\.26"):
        gobuild.build(gobuild.PAUSE)


def test_an_old_go_is_named_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go1.19.8\n")
    old.chmod(0o755)
    monkeypatch.setattr("devcluster.gobuild.shutil.which", lambda _program: str(old))
    with pytest.raises(MissingPrerequisiteError, match=r"is go1\.19\.8: install Go 1\.26"):
        gobuild.build(gobuild.PAUSE)


def test_a_failed_build_shows_the_compilers_words_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "go" / "broken"
    source.mkdir(parents=True)
    (source / "go.mod").write_text("module example.invalid/broken\n\ngo 1.26.0\n")
    (source / "main.go").write_text("package main\n\nfunc main() { undefinedName() }\n")
    monkeypatch.setattr(gobuild, "GO_SOURCES", tmp_path / "go")
    module = GoModule("broken", (("broken", "."),))
    with pytest.raises(DevclusterError, match="undefined: undefinedName"):
        gobuild.build(module)
    assert not gobuild.is_built(module)
    assert [path.name for path in gobuild.output_dir(module).parent.iterdir() if path.is_dir()] == []


def test_a_changed_source_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "go" / "says"
    source.mkdir(parents=True)
    (source / "go.mod").write_text("module example.invalid/says\n\ngo 1.26.0\n")
    monkeypatch.setattr(gobuild, "GO_SOURCES", tmp_path / "go")
    module = GoModule("says", (("says", "."),), aliases=("other",))
    said = []
    for word in ("one", "two"):
        (source / "main.go").write_text(f'package main\n\nfunc main() {{ println("{word}") }}\n')
        program = gobuild.build(module) / "other"
        said.append(subprocess.run([program], check=True, capture_output=True, text=True).stderr)
    assert said == ["one\n", "two\n"]


def test_debian_packages_are_named_for_those_who_are_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devcluster.machine.os.geteuid", lambda: 1000)
    with pytest.raises(MissingPrerequisiteError, match=r"missing: no-such-program.*apt-get install --no-install-recommends its-package"):
        machine.ensure({"no-such-program": "its-package", "sh": "dash"})


def test_root_is_asked_for_with_the_ways_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devcluster.machine.os.geteuid", lambda: 1000)
    with pytest.raises(MissingPrerequisiteError, match=r"run as root, or start a Docker engine.*set KUBECONFIG"):
        machine.require_root()


def test_an_unknown_cluster_is_said_to_be_unknown() -> None:
    with pytest.raises(DevclusterError, match=r"no cluster 'nope' \(known: none\): start it with"):
        find("nope")


def test_an_unknown_image_lists_the_known_ones() -> None:
    with pytest.raises(DevclusterError, match=r"no image 'x:1': one of .*spark-drain-operator:dev"):
        recipe_for("x:1", None, None)


def test_a_missing_dockerfile_is_named(tmp_path: Path) -> None:
    with pytest.raises(DevclusterError, match=r"--dockerfile .*nowhere: no such file"):
        recipe_for("x:1", tmp_path / "nowhere", None)


def test_help_says_what_it_is_not_for() -> None:
    done = subprocess.run([sys.executable, "-m", "devcluster", "--help"], check=True, cwd=REPOSITORY, capture_output=True, text=True)
    assert "Never for production" in done.stdout
    assert "set KUBECONFIG" in done.stdout


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=64", "tmpfs", str(cache)], check=True)
    try:
        _, cluster = clusters.create("full", "embedded", control_plane_only=True)
        with (cache / "ballast").open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
            while ballast.write(b"x" * 4096):
                pass
        monkeypatch.setattr(sys, "argv", ["devcluster", "up", "--name", "other", "--control-plane-only"])
        assert cli.main() == 1
        assert "No space left on device" in capsys.readouterr().err
        subprocess.run(["mount", "-o", "remount,ro", str(cache)], check=True)
        with pytest.raises(DevclusterError, match="full cannot be removed"):
            cluster.forget()
    finally:
        subprocess.run(["umount", str(cache)], check=True)
