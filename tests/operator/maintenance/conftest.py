"""An operator of its own that watches nodes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_drain_store.kube_client import MERGE_PATCH

from tests.operator.conftest import World
from tests.operator.process import OperatorProcess, without_proxy
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import ApiServer

TAINT, SHORT = "example.com/going-away", "example.com/going-now"
WATCH = ("--log-level", "DEBUG", "--node-watch", f"--node-taint={TAINT}=300", f"--node-taint={SHORT}=5", "--node-cordon-seconds", "600")


@pytest.fixture
def watching(api_server: ApiServer, namespace: str, tmp_path: Path) -> Iterator[World]:
    """Return a world whose operator watches nodes, and makes budgets; it is not started yet."""
    operator = OperatorProcess(without_proxy(api_server.environment()), namespace, tmp_path / "operator.log", *WATCH, "--node-budgets")
    yield World(api_server, namespace, operator, ScriptedApplication(api_server.client, namespace))
    if operator.running:
        operator.kill()
    assert "defect in the operator" not in operator.log(), operator.log()[-4000:]


def cordon(world: World, node: str, *, on: bool = True) -> None:
    world.client.request("PATCH", f"/api/v1/nodes/{node}", body={"spec": {"unschedulable": on}}, content_type=MERGE_PATCH)


def taint(world: World, node: str, key: str, **fields: str) -> None:
    taints = [{"key": key, "effect": "NoSchedule", **fields}]
    world.client.request("PATCH", f"/api/v1/nodes/{node}", body={"spec": {"taints": taints}}, content_type=MERGE_PATCH)
