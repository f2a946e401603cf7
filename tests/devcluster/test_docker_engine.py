"""Which Docker engine will do, what is said about another one, and how images are built with it."""

import json
import time
from pathlib import Path

import pytest

from devcluster import clusters, docker, kindcluster
from devcluster.errors import DevclusterError, MissingPrerequisiteError
from devcluster.images.builders import Docker
from devcluster.images.recipes import Recipe
from devcluster.machine import require_root
from devcluster.paths import cluster_dir
from tests.devcluster.stand_in import StandIn


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    (tmp_path / "Dockerfile").write_text("FROM scratch AS jars\n")
    return Recipe(
        "x:dev", tmp_path / "Dockerfile", tmp_path, debian=("only-for-buildah",), target="jars", contexts={"jars": lambda: tmp_path}
    )


@pytest.fixture(params=["20.10.24+dfsg1", "5.4.2", "", "no daemon", "no buildx"])
def unsuitable(request: pytest.FixtureRequest, docker: StandIn) -> str:
    """Return what is said about the engine."""
    case = str(request.param)
    if case == "no daemon":
        docker.says("Cannot connect to the Docker daemon", 1, "version")
        return "no Docker engine answers: Cannot connect to the Docker daemon"
    if case == "no buildx":
        docker.says("docker: 'buildx' is not a docker command.", 1, "buildx")
        return "Docker's buildx plugin is missing (package docker-buildx"
    docker.says(case, 0, "version")
    return f"the Docker engine is {case or 'of no version'}, and `docker build --build-context` needs 23 or newer"


def test_kind_is_chosen_where_the_engine_will_do(docker: StandIn, kind: StandIn) -> None:
    assert clusters.create("new", None, control_plane_only=False)[0] == "kind"
    assert clusters.create("other", "embedded", control_plane_only=False)[0] == "embedded"
    assert kind.calls() == []


def test_an_engine_that_will_not_do_is_not_chosen_and_said_what_it_lacks(unsuitable: str, kind: StandIn) -> None:
    assert docker.lacks().startswith(unsuitable)
    with pytest.raises(MissingPrerequisiteError) as caught:
        clusters.create("wanted", "kind", control_plane_only=False)
    assert f"kind cannot be used: {unsuitable}" in str(caught.value)
    assert "--provider embedded" in str(caught.value)
    assert not cluster_dir("wanted").exists()
    assert clusters.create("new", None, control_plane_only=False)[0] == "embedded"


def test_whoever_is_not_root_is_told_why_docker_was_not_taken(unsuitable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devcluster.machine.os.geteuid", lambda: 1000)
    with pytest.raises(MissingPrerequisiteError) as caught:
        require_root()
    assert f"use --provider kind ({unsuitable}" in str(caught.value)
    with pytest.raises(MissingPrerequisiteError):
        clusters.create("wanted", None, control_plane_only=False)
    assert not cluster_dir("wanted").exists(), "the name is free for the engine that is repaired"


def test_without_docker_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert docker.lacks() == "`docker` was not found"
    with pytest.raises(MissingPrerequisiteError, match="`docker` was not found"):
        docker.run("ps")


def test_an_engine_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "docker"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(docker, "_ANSWER_SECONDS", 0.3)
    began = time.monotonic()
    assert docker.lacks().startswith("the Docker engine did not answer within")
    assert time.monotonic() - began < 30


def test_docker_gets_the_same_folders_as_buildah_and_its_own_base(docker: StandIn, recipe: Recipe, tmp_path: Path) -> None:
    Docker().build(recipe)
    assert docker.calls("build") == [
        [
            *("build", "--tag", "x:dev", "--file", str(tmp_path / "Dockerfile"), "--target", "jars"),
            *("--build-context", f"jars={tmp_path}", str(tmp_path)),
        ]
    ]


def test_pip_asks_no_index_about_what_is_in_the_wheelhouse(docker: StandIn, recipe: Recipe) -> None:
    Docker().build(Recipe("y:dev", recipe.dockerfile, recipe.context, contexts={"wheelhouse": lambda: recipe.context}))
    assert "--build-arg PIP_NO_INDEX=true" in " ".join(docker.calls("build")[0])


def test_the_engines_own_builder_is_used_and_leaves_no_time_in_the_image(
    docker: StandIn, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILDX_BUILDER", "somewhere-else")
    Docker().build(recipe)
    assert docker.settings("build") == [{"BUILDX_BUILDER": "desktop", "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}]


def test_a_failed_build_shows_what_docker_said(docker: StandIn, recipe: Recipe) -> None:
    docker.says("no space left on device", 1, "build")
    with pytest.raises(DevclusterError, match="no space left on device"):
        Docker().build(recipe)


def test_a_known_cluster_whose_engine_is_gone_is_unknown_and_can_be_forgotten(
    docker: StandIn, kind: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    _, cluster = clusters.create("gone", "kind", control_plane_only=False)
    (cluster.folder / "creation").write_text("done\n")
    (cluster.folder / "shared").mkdir()
    assert isinstance(cluster, kindcluster.KindCluster)
    docker.says("Cannot connect to the Docker daemon", 1)
    docker.says("Cannot connect to the Docker daemon", 1, "version")
    assert [(each["name"], each["state"]) for each in json.loads(clusters.describe_all())] == [("gone", "unknown")]
    with pytest.raises(MissingPrerequisiteError, match="no Docker engine answers"):
        cluster.down()
    cluster.down(purge=True)
    assert "cluster 'gone' is forgotten; its nodes, if there are any, stay: no Docker engine answers" in capsys.readouterr().err
    assert clusters.known() == []
    assert clusters.create("gone", "embedded", control_plane_only=False)[0] == "embedded"
    assert kind.calls() == []
