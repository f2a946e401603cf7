"""The API server that other suites use."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import holding
from devcluster.api import RunningControlPlane, control_plane
from devcluster.paths import REPOSITORY
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="module")
def plane() -> Iterator[RunningControlPlane]:
    with control_plane() as running:
        yield running


def kubectl(plane: RunningControlPlane, *arguments: str) -> str:
    return subprocess.run(
        [plane.kubectl, *arguments], check=True, capture_output=True, text=True, env=plane.environment(), timeout=60
    ).stdout


def test_it_is_the_pinned_kubernetes(plane: RunningControlPlane) -> None:
    versions = json.loads(kubectl(plane, "version", "-o", "json"))
    assert versions["serverVersion"]["gitVersion"] == versions["clientVersion"]["gitVersion"] == "v1.36.3"


def test_kubectl_on_the_path_is_ours(plane: RunningControlPlane) -> None:
    out = subprocess.run(
        "kubectl get namespace default -o name", shell=True, check=True, capture_output=True, text=True, env=plane.environment()
    )
    assert out.stdout == "namespace/default\n"


def test_controllers_run(plane: RunningControlPlane) -> None:
    kubectl(plane, "create", "namespace", "gone")
    kubectl(plane, "create", "deployment", "d", "--namespace", "gone", "--image", "none")
    kubectl(plane, "wait", "--namespace", "gone", "--for=create", "replicaset", "--selector=app=d", "--timeout=20s")
    kubectl(plane, "delete", "namespace", "gone", "--timeout=30s")
    assert "gone" not in kubectl(plane, "get", "namespaces", "-o", "name")


def test_etcd_answers_only_with_a_certificate(plane: RunningControlPlane) -> None:
    port = json.loads((plane.state_dir / "ports.json").read_text())["etcd"]
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", plane.state_dir / "pki" / "ca.crt", "-quiet"],
        check=False,
        input="GET /health HTTP/1.0\r\n\r\n",
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert "health" not in done.stdout
    assert "certificate required" in done.stderr or "bad certificate" in done.stderr


def test_each_run_starts_empty_and_a_state_dir_is_kept(tmp_path: Path) -> None:
    with control_plane(state_dir=tmp_path / "kept") as first:
        kubectl(first, "create", "namespace", "mine")
    with control_plane(state_dir=tmp_path / "kept") as second:
        assert "namespace/mine" in kubectl(second, "get", "namespaces", "-o", "name")
    with control_plane() as fresh:
        assert "namespace/mine" not in kubectl(fresh, "get", "namespaces", "-o", "name")


_CALLER = """
import sys, time
from pathlib import Path
from devcluster.api import control_plane
with control_plane(state_dir=Path(sys.argv[1])):
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.mark.soak
def test_daemons_end_with_a_killed_caller(tmp_path: Path) -> None:
    caller = subprocess.Popen([sys.executable, "-c", _CALLER, tmp_path], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    assert caller.stdout is not None
    with caller.stdout:
        assert caller.stdout.readline() == "up\n"
        pids = [*holding.Client(tmp_path).running().values(), holding.holder_pid(tmp_path)]
        assert len(pids) == 4
        caller.kill()
        caller.wait()
    _await_end([pid for pid in pids if pid is not None])


def test_daemons_end_with_a_killed_holder(tmp_path: Path) -> None:
    with control_plane(state_dir=tmp_path):
        pids = list(holding.Client(tmp_path).running().values())
        holder = holding.holder_pid(tmp_path)
        assert holder is not None
        os.kill(holder, signal.SIGKILL)
        _await_end(pids)


def _await_end(pids: list[int]) -> None:
    eventually(lambda: not [pid for pid in pids if Path(f"/proc/{pid}/exe").exists() and _is_running(pid)], f"none of {pids} is alive", 10)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


class TestCommandLine:
    """``up`` and ``down`` of a named control plane."""

    @pytest.fixture
    def name(self) -> Iterator[str]:
        name = f"test-{os.getpid()}"
        yield name
        self.run("down", "--purge", "--name", name)

    def run(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "devcluster", *arguments]
        return subprocess.run(command, check=True, cwd=REPOSITORY, capture_output=True, text=True, timeout=120).stdout

    def test_up_heals_what_was_killed_and_down_ends_all(self, name: str) -> None:
        config = self.run("up", "--control-plane-only", "--name", name).strip()
        assert config == self.run("kubeconfig", "--name", name).strip()
        client = holding.Client(Path(config).parent)
        before = client.running()
        assert set(before) == {"etcd", "kube-apiserver", "kube-controller-manager"}
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)
        _await_end(list(before.values()))
        self.run("up", "--control-plane-only", "--name", name)
        after = client.running()
        assert set(after) == set(before)
        assert not set(after.values()) & set(before.values())
        assert "default" in self.run("kubectl", "--name", name, "--", "get", "namespaces")
        self.run("down", "--name", name)
        _await_end(list(after.values()))
        assert json.loads(self.run("status")) != []

    def test_a_control_plane_is_not_turned_into_a_cluster(self, name: str) -> None:
        self.run("up", "--control-plane-only", "--name", name)
        done = subprocess.run(
            [sys.executable, "-m", "devcluster", "up", "--name", name, "--provider", "embedded"],
            check=False,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1
        assert f"cluster {name!r} exists as control-plane: use another --name" in done.stderr
