"""What a cluster of kind gives, and that it can be stopped and started."""

import json
from functools import partial

import pytest
import yaml

from devcluster import docker
from devcluster.paths import clusters_dir
from tests.kind.conftest import NAME, Cluster
from tests.support.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

WORKERS = (f"{NAME}-worker", f"{NAME}-worker2")
_IMAGE = "devcluster-probe:dev"
_WAIT = "trap 'exit 0' TERM; while :; do sleep 1; done"


def pod(node: str) -> dict[str, object]:
    container = {
        "name": "main",
        "image": _IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", _WAIT],
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"on-{node}"},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": [{"name": "shared", "hostPath": {"path": "/mnt/shared"}}],
        },
    }


@pytest.fixture(scope="module")
def pods(kind: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Return the cluster with a pod of an image of ours on each worker."""
    dockerfile = tmp_path_factory.mktemp("image") / "Dockerfile"
    dockerfile.write_text("ARG BASE_IMAGE=python:3.11-slim-bookworm\nFROM ${BASE_IMAGE}\nUSER 185\n")
    for _ in range(2):
        kind.run("load-image", _IMAGE, "--dockerfile", str(dockerfile))
    kind.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(pod(node) for node in WORKERS))
    kind.kubectl("wait", "--for=condition=Ready", *(f"pod/on-{node}" for node in WORKERS), "--timeout=120s")
    return kind


def answers(cluster: Cluster, node: str) -> bool:
    try:
        return cluster.kubectl("exec", f"on-{node}", "--", "cat", "/shared/note") == "hello\n"
    except AssertionError:
        return False  # a kubelet that has just come back does not know its pods yet


def test_three_nodes_are_ready_after_a_killed_creation(kind: Cluster) -> None:
    nodes = json.loads(kind.kubectl("get", "nodes", "-o", "json"))["items"]
    conditions = [(node["metadata"]["name"], item["type"], item["status"]) for node in nodes for item in node["status"]["conditions"]]
    assert {name for name, *said in conditions if said == ["Ready", "True"]} == {f"{NAME}-control-plane", *WORKERS}


def test_an_image_is_loaded_onto_workers_alone_and_once(pods: Cluster) -> None:
    """The second time, its label says that the node has it."""
    wanted = docker.image_id(_IMAGE)
    labels = {
        node: docker.run("exec", node, "ctr", "--namespace", "k8s.io", "images", "ls", f'name=="docker.io/library/{_IMAGE}"')
        for node in pods.containers()
    }
    assert {node for node, text in labels.items() if wanted in text} == set(WORKERS)


def test_workers_share_a_folder(pods: Cluster) -> None:
    pods.kubectl("exec", f"on-{WORKERS[0]}", "--", "sh", "-c", "echo hello > /shared/note")
    assert answers(pods, WORKERS[1])
    assert (clusters_dir() / NAME / "shared" / "note").read_text() == "hello\n"


def test_objects_and_images_outlive_down(pods: Cluster) -> None:
    pods.run("down")
    assert pods.containers() == []
    assert len(pods.containers("--all")) == len(WORKERS) + 1
    pods.up()
    for node in WORKERS:
        eventually(partial(answers, pods, node), f"the pod on {node} answers", 120)
