"""The cluster without Docker: what it gives, and that nothing of it stays."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from devcluster import docker, holding
from devcluster.embedded.layout import NODES
from devcluster.paths import REPOSITORY, clusters_dir
from tests.devcluster import machine_state
from tests.support.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

NAME = "leaktest"
_POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeName: {node}
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: devcluster-probe:dev
      imagePullPolicy: IfNotPresent
      command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1; done"]
      volumeMounts: [{{name: memory, mountPath: /memory}}, {{name: shared, mountPath: /shared}}]
  volumes:
    - {{name: memory, emptyDir: {{medium: Memory}}}}
    - {{name: shared, hostPath: {{path: /mnt/shared}}}}
"""


class Cluster:
    """The command line on one name."""

    def run(self, *arguments: str, text: str | None = None) -> str:
        command = [sys.executable, "-m", "devcluster", *arguments]
        done = subprocess.run(command, check=False, cwd=REPOSITORY, input=text, capture_output=True, text=True)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    def up(self) -> float:
        began = time.monotonic()
        self.run("up", "--name", NAME, "--provider", "embedded")
        return time.monotonic() - began

    def down(self, *options: str) -> None:
        self.run("down", "--name", NAME, *options)

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        return self.run("kubectl", "--name", NAME, "--", *arguments, text=text)

    def container_of(self, node: str) -> str:
        return self.kubectl("get", "pod", f"on-{node}", "-o", "jsonpath={.status.containerStatuses[0].containerID}")

    def answer_of(self, pod: str) -> str:
        """What a pod says: a kubelet that has just come back is Ready before it knows its pods again."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.kubectl("exec", pod, "--", "echo", "alive")
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)

    def start_pods(self) -> None:
        self.kubectl("apply", "-f", "-", text="---".join(_POD.format(name=f"on-{node.name}", node=node.name) for node in NODES))
        self.kubectl("wait", "--for=condition=Ready", *(f"pod/on-{node.name}" for node in NODES), "--timeout=90s")


@pytest.fixture(scope="module")
def nothing() -> dict[str, object]:
    """Return what the machine has without the cluster."""
    if os.geteuid() != 0:
        if not docker.lacks():
            pytest.skip("the embedded cluster needs root, and this machine has Docker for kind")
        pytest.fail("the embedded cluster needs root: run the tests with -m 'not cluster', or as root")
    Cluster().down("--purge")
    return machine_state.snapshot((str(clusters_dir() / NAME), NAME))


@pytest.fixture(scope="module")
def cluster(nothing: dict[str, object], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        cluster.up()
        context = tmp_path_factory.mktemp("image")
        (context / "Dockerfile").write_text("ARG BASE_IMAGE=python:3.11-slim-bookworm\nFROM ${BASE_IMAGE}\nUSER 1000\n")
        cluster.run("load-image", "devcluster-probe:dev", "--name", NAME, "--dockerfile", str(context / "Dockerfile"))
        yield cluster
    finally:
        cluster.down("--purge")
    assert not (clusters_dir() / NAME).exists()


@pytest.fixture
def pods(cluster: Cluster) -> Cluster:
    cluster.up()
    cluster.start_pods()
    return cluster


def test_pods_on_two_nodes_see_each_other_names_and_the_shared_folder(pods: Cluster) -> None:
    first, second = (f"on-{node.name}" for node in NODES)
    pods.kubectl("exec", first, "--", "sh", "-c", "echo hello > /shared/note")
    assert pods.kubectl("exec", second, "--", "cat", "/shared/note") == "hello\n"
    address = pods.kubectl("get", "pod", first, "-o", "jsonpath={.status.podIP}")
    serve = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8000, bind='0.0.0.0')"
    pods.kubectl("exec", first, "--", "sh", "-c", f'python3 -c "{serve}" >/dev/null 2>&1 &')
    fetch = f"import urllib.request as u, time; time.sleep(1); print(u.urlopen('http://{address}:8000', timeout=5).status)"
    assert pods.kubectl("exec", second, "--", "python3", "-c", fetch) == "200\n"
    resolve = "import socket; print(socket.gethostbyname('kubernetes.default.svc.cluster.local'))"
    assert pods.kubectl("exec", second, "--", "python3", "-c", resolve) == "10.96.0.1\n"


def test_the_nodes_containerds_share_no_socket(cluster: Cluster) -> None:
    """Both would listen at containerd's default for NRI: a race, which one of them loses now and then."""
    for node in NODES:
        assert "NRI interface is disabled" in (clusters_dir() / NAME / "log" / f"containerd-{node.name}.log").read_text()


def test_there_is_no_way_out(pods: Cluster) -> None:
    attempt = "import socket; socket.setdefaulttimeout(2); socket.create_connection(('192.0.2.1', 80))"
    command = f'python3 -c "{attempt}" 2>&1 | tail -1'
    said = pods.kubectl("exec", "on-node1", "--", "sh", "-c", command)
    assert "timed out" in said or "unreachable" in said or "No route" in said
    links = json.loads(pods.run("exec", "--name", NAME, "--", "ip", "-json", "link"))
    assert all(link["ifname"].startswith(("lo", "eth0", "cni", "veth")) for link in links)
    assert next(link for link in links if link["ifname"] == "eth0")["link_type"] == "ether"


def test_a_killed_kubelet_comes_back_with_up_and_its_pod_lives_on(pods: Cluster) -> None:
    before = pods.container_of("node2")
    client = holding.Client(clusters_dir() / NAME)
    for name in ("kubelet-node2", "containerd-node2"):
        client.signal(name, signal.SIGKILL)
    eventually(lambda: "kubelet-node2" not in client.running(), "the kubelet is gone", 10)
    pods.up()
    assert pods.container_of("node2") == before
    assert pods.answer_of("on-node2") == "alive\n"


def test_objects_and_images_survive_nothing_else_does_and_a_warm_start_is_quick(nothing: dict[str, object], pods: Cluster) -> None:
    # Pods of an earlier test were started anew themselves, and may not have said so yet.
    pods.kubectl("delete", "pod", "--all", "--now")
    pods.start_pods()
    pods.kubectl("apply", "-f", "-", text="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\ndata: {a: b}\n")
    config = (clusters_dir() / NAME / "kubeconfig").read_text()
    before = {node.name: pods.container_of(node.name) for node in NODES}
    pods.down()
    assert machine_state.snapshot((str(clusters_dir() / NAME), NAME)) == nothing
    seconds = pods.up()
    print(f"warm start to two Ready nodes: {seconds:.1f} s")
    assert seconds <= 40
    assert (clusters_dir() / NAME / "kubeconfig").read_text() == config
    assert pods.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.a}") == "b"

    def renewed(node: str) -> bool:
        return pods.container_of(node) != before[node]

    # As after a power cut: containers are started anew, in the same pods.
    for node in NODES:
        eventually(partial(renewed, node.name), f"{node.name} has started its container anew", 120, every=0.5)
        pods.kubectl("wait", "--for=condition=Ready", f"pod/on-{node.name}", "--timeout=90s")
        assert pods.answer_of(f"on-{node.name}") == "alive\n"
    pods.kubectl("delete", "pod", "--all", "--now")
    pods.start_pods()  # without loading the image again


def _holder_only(folder: Path) -> None:
    pid = holding.holder_pid(folder)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def _everything_but_the_holder(folder: Path) -> None:
    pid = holding.holder_pid(folder)
    assert pid is not None
    inside = (Path("/proc") / str(pid) / "ns" / "pid").readlink()
    for _ in range(3):  # killing shims makes orphans of what they ran
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != pid:
                try:
                    if (entry / "ns" / "pid").readlink() == inside:
                        os.kill(int(entry.name), signal.SIGKILL)
                except OSError:
                    continue


@pytest.mark.parametrize(
    "kill",
    [
        pytest.param(_holder_only, id="holder killed"),
        pytest.param(_everything_but_the_holder, id="all else killed", marks=pytest.mark.soak),
    ],
)
def test_down_leaves_nothing_behind_of_what_was_killed(cluster: Cluster, kill: Callable[[Path], None]) -> None:
    folder = clusters_dir() / NAME
    cluster.down()
    before = machine_state.snapshot((str(folder), NAME))
    inodes = {kind: machine_state.namespaces(kind) for kind in ("net", "pid", "mnt")}
    cluster.up()
    cluster.start_pods()
    pid = holding.holder_pid(folder)
    assert pid is not None
    own = {kind: str((Path("/proc") / str(pid) / "ns" / kind).readlink()) for kind in inodes}
    assert all(own[kind] not in known for kind, known in inodes.items())
    kill(folder)
    cluster.down()
    assert machine_state.snapshot((str(folder), NAME)) == before
    assert all(own[kind] not in machine_state.namespaces(kind) for kind in own)


@pytest.mark.soak
def test_an_interrupted_up_is_gone_on_with(cluster: Cluster) -> None:
    """Each next one meets what the one before had begun, and is let go further."""
    cluster.down()
    for seconds in (0.2, 0.6, 1.5, 3.0):
        interruptible = ("env", "--default-signal=INT")
        command = [*interruptible, sys.executable, "-m", "devcluster", "up", "--name", NAME, "--provider", "embedded"]
        up = subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        time.sleep(seconds)
        up.send_signal(signal.SIGINT)
        assert up.communicate(timeout=60)[1]
    cluster.up()
    assert cluster.kubectl("get", "nodes", "-o", "name").split() == [f"node/{node.name}" for node in NODES]


def test_helm_talks_to_it(cluster: Cluster) -> None:
    cluster.up()
    assert json.loads(cluster.run("helm", "--name", NAME, "--", "list", "-A", "-o", "json")) == []


def test_a_changed_image_is_there_at_once_under_the_same_name(pods: Cluster, tmp_path: Path) -> None:
    dockerfile = tmp_path / "Dockerfile"
    for word in ("first", "second"):
        dockerfile.write_text(f"ARG BASE_IMAGE=python:3.11-slim-bookworm\nFROM ${{BASE_IMAGE}}\nENV WORD={word}\nUSER 1000\n")
        pods.run("load-image", "devcluster-word:dev", "--name", NAME, "--dockerfile", str(dockerfile))
        pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: word}\nspec:\n  restartPolicy: Never\n  containers:\n"
        pod += "  - {name: main, image: 'devcluster-word:dev', imagePullPolicy: Never, command: [sh, -c, 'echo $WORD']}\n"
        pods.kubectl("apply", "-f", "-", text=pod)
        pods.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/word", "--timeout=60s")
        assert pods.kubectl("logs", "word") == f"{word}\n"
        pods.kubectl("delete", "pod", "word", "--now")


def test_builds_leave_no_mount(cluster: Cluster, tmp_path: Path) -> None:
    before = machine_state.mounts()
    (tmp_path / "Dockerfile").write_text("ARG BASE_IMAGE=python:3.11-slim-bookworm\nFROM ${BASE_IMAGE}\nRUN sleep 61.25\nUSER 1000\n")
    command = [sys.executable, "-m", "devcluster", "load-image", "killed:dev", "--name", NAME, "--dockerfile", str(tmp_path / "Dockerfile")]
    build = subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.DEVNULL, start_new_session=True)
    eventually(lambda: machine_state.processes_that_mention(str(tmp_path)) and _sleeping(), "the build sleeps", every=0.2)
    os.killpg(build.pid, signal.SIGKILL)
    build.wait()
    assert machine_state.mounts() == before


def _sleeping() -> bool:
    return bool(machine_state.processes_that_mention("sleep 61.25"))
