"""What the API server accepts and refuses of an ExecutorPlacement, and in which words; asked, not simulated."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from spark_drain_store.kube_client import ApiError

from tests.crds.requests import change_in, create_in
from tests.support.apiserver import PLACEMENTS, ROOT, ApiServer, placement_body

pytestmark = pytest.mark.apiserver

NODE = {"type": "Node", "nodeName": "node-2"}
ACCEPTED: dict[str, dict[str, Any]] = {
    "least": {"executorId": "1"},
    "pod": {"podName": "app-spark-1-exec-1"},
    "node": {"executorId": "1", "destination": NODE},
    "labels": {"executorId": "1", "destination": {"type": "Selector", "nodeSelector": {"example.com/disk": "ssd", "zone": ""}}},
    "any other with labels": {"executorId": "1", "destination": {"type": "AnyOther", "nodeSelector": {"disk": "ssd"}}},
    "last seen": {"executorId": "1", "destination": {"type": "LastSeen"}},
    "forced": {"executorId": "1", "destination": {"type": "ForceRestartLastSeen"}},
    "times": {"executorId": "1", "expirationSeconds": 1, "acknowledgeTimeoutSeconds": 1, "ttlSecondsAfterFinished": 0},
    "no time": {"executorId": "1", "decommissionAfterSeconds": 0},
    "run": {"executorId": "1", "runId": "spark-1", "cancel": False},
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no executor": ({}, "one of `executorId` and `podName` must be set"),
    "two executors": ({"executorId": "1", "podName": "app-exec-1"}, "one of `executorId` and `podName` must be set"),
    "driver": ({"executorId": "driver"}, "spec.executorId: Invalid value"),
    "executor as number": ({"executorId": 4}, "spec.executorId: Invalid value"),
    "pod that leads elsewhere": ({"podName": "../x"}, "spec.podName: Invalid value"),
    "no destination": ({"executorId": "1", "destination": None}, "spec.destination: Required"),
    "unknown destination": ({"executorId": "1", "destination": {"type": "Moon"}}, "spec.destination.type: Unsupported value"),
    "node without name": ({"executorId": "1", "destination": {"type": "Node"}}, "`nodeName` must be set when `type` is Node"),
    "name without node": ({"executorId": "1", "destination": {**NODE, "type": "AnyOther"}}, "must be absent otherwise"),
    "selector without labels": (
        {"executorId": "1", "destination": {"type": "Selector"}},
        "`nodeSelector` must be set when `type` is Selector",
    ),
    "labels of a node": (
        {"executorId": "1", "destination": {**NODE, "nodeSelector": {"a": "b"}}},
        "`nodeSelector` may only be set when `type` is Selector or AnyOther",
    ),
    "no labels": ({"executorId": "1", "destination": {"type": "Selector", "nodeSelector": {}}}, "spec.destination.nodeSelector"),
    "expired at once": ({"executorId": "1", "expirationSeconds": 0}, "spec.expirationSeconds: Invalid value"),
    "decommissioned twice": (
        {"executorId": "1", "destination": {"type": "ForceRestartLastSeen"}, "decommissionAfterSeconds": 1},
        "`decommissionAfterSeconds` must be absent when the destination's `type` is ForceRestartLastSeen",
    ),
    "typing error": ({"executorId": "1", "expirySeconds": 5}, "unknown field"),
}
CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "application": ({"applicationRef": {"name": "other"}}, "`applicationRef`"),
    "destination": ({"destination": {"type": "LastSeen"}}, "`destination`"),
    "run added": ({"runId": "spark-1"}, "`runId`"),
    "executor": ({"executorId": "2"}, "`executorId`"),
    "pod instead": ({"executorId": None, "podName": "pod"}, "`executorId` `podName`"),
    "expiry": ({"expirationSeconds": 9}, "`expirationSeconds`"),
    "decommissioning": ({"decommissionAfterSeconds": 9}, "`decommissionAfterSeconds`"),
    "patience": ({"acknowledgeTimeoutSeconds": 9}, "`acknowledgeTimeoutSeconds`"),
    "ttl": ({"ttlSecondsAfterFinished": 9}, "`ttlSecondsAfterFinished`"),
}


create, change = partial(create_in, PLACEMENTS), partial(change_in, PLACEMENTS)


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(api_server: ApiServer, case: str) -> None:
    body = create(api_server, placement_body("accepted", **ACCEPTED[case]))
    assert body["spec"].items() >= ACCEPTED[case].items()


@pytest.mark.parametrize("case", REFUSED)
def test_refused(api_server: ApiServer, case: str) -> None:
    spec, words = REFUSED[case]
    with pytest.raises(ApiError) as caught:
        create(api_server, placement_body("refused", **spec))
    assert caught.value.status in (400, 422)
    assert words in caught.value.message


@pytest.fixture(scope="module")
def present(api_server: ApiServer) -> str:
    create(api_server, placement_body("present", executorId="1"), dry_run=False)
    return "present"


@pytest.mark.parametrize("case", CHANGED)
def test_the_spec_does_not_change(api_server: ApiServer, present: str, case: str) -> None:
    spec, names = CHANGED[case]
    with pytest.raises(ApiError) as caught:
        change(api_server, present, spec, dry_run=True)
    assert caught.value.status == 422
    assert f"create another ExecutorPlacement instead. Changed: {names}" in caught.value.message


def test_cancel_is_set_once(api_server: ApiServer) -> None:
    create(api_server, placement_body("switched", executorId="1"), dry_run=False)
    change(api_server, "switched", {"cancel": True})
    for value in (False, None):
        with pytest.raises(ApiError, match="Changed: `cancel`"):
            change(api_server, "switched", {"cancel": value})


@pytest.mark.parametrize("path", sorted((ROOT / "examples/placements").glob("*.yaml")), ids=lambda path: path.stem)
def test_samples_are_accepted(api_server: ApiServer, path: Path) -> None:
    create(api_server, yaml.safe_load(path.read_text()))


def test_there_are_samples() -> None:
    assert len(list((ROOT / "examples/placements").glob("*.yaml"))) >= 3


def test_explain_knows_the_fields(api_server: ApiServer) -> None:
    text = api_server.run_kubectl("explain", "executorplacement.spec.destination.type")
    assert "any node but the present one" in " ".join(text.split())
