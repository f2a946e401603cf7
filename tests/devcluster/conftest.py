"""Docker, kind and kubectl, with programs in their places."""

from pathlib import Path

import pytest

from devcluster import gobuild
from tests.devcluster.stand_in import StandIn


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Return an engine that will do, without images and containers."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    docker = StandIn(tmp_path, "docker")
    docker.says("28.2.2", 0, "version")
    docker.says("desktop", 0, "context", "show")
    return docker


@pytest.fixture
def kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for module in (gobuild.KIND, gobuild.KUBE):
        gobuild.output_dir(module).mkdir(parents=True)
    return StandIn(gobuild.output_dir(gobuild.KIND), "kind")


@pytest.fixture
def kubectl(kind: StandIn) -> StandIn:
    return StandIn(gobuild.output_dir(gobuild.KUBE), "kubectl")
