"""What Docker and kind are asked to do, seen from a stand-in for their programs."""

import json
import sys
from pathlib import Path

import pytest

from devcluster import clusters, gobuild, kindcluster
from devcluster.errors import DevclusterError
from devcluster.images.builders import Docker
from devcluster.images.loading import load
from devcluster.images.recipes import Recipe
from devcluster.kindcluster import KindCluster
from devcluster.paths import REPOSITORY
from devcluster.progress import Progress


class StandIn:
    """A program that notes how it is called, and says or fails what it is told to."""

    def __init__(self, folder: Path, name: str) -> None:
        self.notes = folder / f"{name}.calls"
        self.reply = folder / f"{name}.reply"
        self.says("", 0)
        program = folder / name
        program.write_text(
            f"#!{sys.executable}\nimport json, sys\n"
            f"open({str(self.notes)!r}, 'a').write(json.dumps(sys.argv[1:]) + '\\n')\n"
            f"text, code = json.load(open({str(self.reply)!r}))\n"
            "print(text, file=sys.stderr if code else sys.stdout)\nsys.exit(code)\n"
        )
        program.chmod(0o755)

    def says(self, text: str, code: int) -> None:
        self.reply.write_text(json.dumps([text, code]))

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self.notes.read_text().splitlines()] if self.notes.exists() else []


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return StandIn(tmp_path, "docker")


@pytest.fixture
def kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for module in (gobuild.KIND, gobuild.KUBE):
        gobuild.output_dir(module).mkdir(parents=True)
    return StandIn(gobuild.output_dir(gobuild.KIND), "kind")


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    (tmp_path / "Dockerfile").write_text("FROM scratch AS jars\n")
    return Recipe(
        "x:dev", tmp_path / "Dockerfile", tmp_path, debian=("only-for-buildah",), target="jars", contexts={"jars": lambda: tmp_path}
    )


@pytest.mark.parametrize(("code", "chosen"), [(0, "kind"), (1, "embedded")])
def test_kind_is_chosen_where_an_engine_answers(docker: StandIn, kind: StandIn, code: int, chosen: str) -> None:
    docker.says("", code)
    assert clusters.create("new", None, control_plane_only=False)[0] == chosen
    assert docker.calls() == [["info"]]
    assert clusters.create("other", "embedded", control_plane_only=False)[0] == "embedded"
    assert kind.calls() == []


def test_docker_gets_the_same_folders_as_buildah_and_its_own_base(docker: StandIn, recipe: Recipe, tmp_path: Path) -> None:
    Docker().build(recipe)
    (call,) = docker.calls()
    assert call == [
        *("build", "--tag", "x:dev", "--file", str(tmp_path / "Dockerfile"), "--target", "jars"),
        *("--build-context", f"jars={tmp_path}", str(tmp_path)),
    ]


def test_a_failed_build_shows_what_docker_said(docker: StandIn, recipe: Recipe) -> None:
    docker.says("no space left on device", 1)
    with pytest.raises(DevclusterError, match="no space left on device"):
        Docker().build(recipe)


def test_a_cluster_is_made_from_our_configuration_once(kind: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kindcluster, "_SHARED_ON_THE_MACHINE", tmp_path / "shared")
    cluster = KindCluster(tmp_path / "dev")
    cluster.up(Progress(kindcluster.STEPS, quiet=True))
    config = str(tmp_path / "dev" / "kubeconfig")
    assert kind.calls() == [
        ["get", "clusters"],
        ["create", "cluster", "--config", str(REPOSITORY / "kind-config.yaml"), "--kubeconfig", config, "--wait", "180s", "--name", "dev"],
        ["export", "kubeconfig", "--kubeconfig", config, "--name", "dev"],
    ]
    assert (tmp_path / "shared").stat().st_mode & 0o7777 == 0o1777
    kind.says("dev\nanother", 0)
    cluster.up(Progress(kindcluster.STEPS, quiet=True))
    assert [call[:2] for call in kind.calls()[3:]] == [["get", "clusters"], ["export", "kubeconfig"]]


def test_images_go_to_kinds_nodes(docker: StandIn, kind: StandIn, recipe: Recipe, tmp_path: Path) -> None:
    load(KindCluster(tmp_path / "dev"), [recipe], Progress(2, quiet=True))
    assert docker.calls()[0][:3] == ["build", "--tag", "x:dev"]
    assert kind.calls() == [["load", "docker-image", "x:dev", "--name", "dev"]]
