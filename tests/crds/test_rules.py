"""What the API server accepts and refuses, and in which words; asked, not simulated."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from spark_drain_store.kube_client import MERGE_PATCH, ApiError

from tests.crds.requests import change_in, create_in
from tests.support.apiserver import DRAINS, ROOT, ApiServer, drain_body
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SIDE_OUTPUT = {"policy": "SideOutput", "sideOutput": {"path": "s3a://bucket/incomplete"}}
POD = {"apiVersion": "v1", "kind": "Pod", "name": "driver"}
APACHE = {"apiVersion": "spark.apache.org/v1", "kind": "SparkApplication", "name": "app"}

ACCEPTED: dict[str, dict[str, Any]] = {
    "least": {},
    "apache": {"applicationRef": APACHE},
    "pod": {"applicationRef": POD},
    "run": {"runId": "spark-1"},
    "drain": {"mode": "Drain", "incompleteWindows": {"policy": "Discard"}, "checkpoint": {"policy": "Auto"}},
    "catch up": {"mode": "CatchUp", "incompleteWindows": SIDE_OUTPUT},
    "stop": {"mode": "Stop", "stateExport": {"path": "s3a://bucket/state"}},
    "subset": {"queries": ["a", "b"], "afterDrain": "Keep"},
    "archives": {"checkpoint": {"retainArchives": 0}},
    "batch ids start again": {"checkpoint": {"policy": "Reseed", "acceptBatchIdRestart": True}},
    "approved at once": {"execution": "AfterApproval", "approved": True},
    "not approved": {"approved": False},
    "cancelled at once": {"cancel": True},
    "times": {
        "acknowledgeTimeoutSeconds": 1,
        "timeoutSeconds": 1,
        "expirationTime": "2030-01-01T00:00:00+01:00",
        "expirationSeconds": 1,
        "ttlSecondsAfterFinished": 0,
    },
    "force": {"onTimeout": "ForceStop", "afterDrain": "Delete"},
    "restart": {"mode": "Stop", "onTimeout": "ForceStop", "afterDrain": "Restart"},
}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "mode": ({"mode": "Fast"}, "spec.mode: Unsupported value"),
    "api version": ({"applicationRef": {**APACHE, "apiVersion": "apps/v1"}}, "spec.applicationRef.apiVersion: Unsupported value"),
    "pod of a group": ({"applicationRef": {**APACHE, "kind": "Pod"}}, "`kind` must be Pod when `apiVersion` is v1"),
    "application of v1": ({"applicationRef": {**POD, "kind": "SparkApplication"}}, "`kind` must be Pod when `apiVersion` is v1"),
    "no name": ({"applicationRef": {"apiVersion": "v1", "kind": "Pod"}}, "spec.applicationRef.name: Required"),
    "name that leads elsewhere": (
        {"applicationRef": {**POD, "name": "a/../../configmaps?watch=true&x="}},
        "spec.applicationRef.name: Invalid",
    ),
    "name of dots": ({"applicationRef": {**POD, "name": ".."}}, "spec.applicationRef.name: Invalid"),
    "name in capitals": ({"applicationRef": {**APACHE, "name": "App"}}, "spec.applicationRef.name: Invalid"),
    "name that is no label": ({"applicationRef": {**APACHE, "name": "x" * 64}}, "must be at most 63 characters long"),
    "long name": ({"applicationRef": {**POD, "name": "x" * 221}}, "spec.applicationRef.name: Too long"),
    "subset and suspend": ({"queries": ["a"]}, "`queries` may only be set when `afterDrain` is Keep"),
    "empty subset": ({"queries": [], "afterDrain": "Keep"}, "spec.queries: Invalid value"),
    "query twice": ({"queries": ["a", "a"], "afterDrain": "Keep"}, "spec.queries[1]: Duplicate"),
    "query with comma": ({"queries": ["a,b"], "afterDrain": "Keep"}, "spec.queries[0]: Invalid value"),
    "too many queries": ({"queries": [f"q{n}" for n in range(33)], "afterDrain": "Keep"}, "spec.queries: Too many"),
    "windows and stop": (
        {"mode": "Stop", "incompleteWindows": {"policy": "Emit"}},
        "`incompleteWindows` must be absent when `mode` is Stop",
    ),
    "checkpoint and stop": ({"mode": "Stop", "checkpoint": {"policy": "Keep"}}, "`checkpoint` must be absent when `mode` is Stop"),
    "side output without place": ({"incompleteWindows": {"policy": "SideOutput"}}, "`sideOutput` must be set when `policy` is SideOutput"),
    "place without side output": ({"incompleteWindows": {**SIDE_OUTPUT, "policy": "Emit"}}, "must be absent otherwise"),
    "side output without path": ({"incompleteWindows": {"policy": "SideOutput", "sideOutput": {}}}, "sideOutput.path: Required"),
    "windows without policy": ({"incompleteWindows": {}}, "spec.incompleteWindows.policy: Required"),
    "empty checkpoint": ({"checkpoint": {}}, "spec.checkpoint"),
    "checkpoint policy": ({"checkpoint": {"policy": "Delete"}}, "spec.checkpoint.policy: Unsupported value"),
    "batch ids start again with Auto": (
        {"checkpoint": {"acceptBatchIdRestart": True}},
        "`acceptBatchIdRestart` may only be true when `policy` is Reseed",
    ),
    "negative archives": ({"checkpoint": {"retainArchives": -1}}, "spec.checkpoint.retainArchives: Invalid value"),
    "state loss": ({"stateLossPolicy": "Maybe"}, "spec.stateLossPolicy: Unsupported value"),
    "export without path": ({"stateExport": {}}, "spec.stateExport.path: Required"),
    "execution": ({"execution": "Later"}, "spec.execution: Unsupported value"),
    "approved at once": ({"approved": True}, "`approved` may only be true when `execution` is AfterApproval"),
    "not running": ({"ifNotRunning": "Fail"}, "spec.ifNotRunning: Unsupported value"),
    "no patience": ({"acknowledgeTimeoutSeconds": 0}, "spec.acknowledgeTimeoutSeconds: Invalid value"),
    "no time": ({"timeoutSeconds": 0}, "spec.timeoutSeconds: Invalid value"),
    "time as text": ({"timeoutSeconds": "30m"}, "spec.timeoutSeconds: Invalid value"),
    "expiration": ({"expirationTime": "tomorrow"}, "spec.expirationTime: Invalid value"),
    "expiration in lower case": ({"expirationTime": "2030-01-01t00:00:00z"}, "spec.expirationTime: Invalid value"),
    "expiration in no zone": ({"expirationTime": "2030-01-01T00:00:00+25:00"}, "spec.expirationTime: Invalid value"),
    "expiration in a leap second": ({"expirationTime": "2030-01-01T00:00:60Z"}, "spec.expirationTime: Invalid value"),
    "expired at once": ({"expirationSeconds": 0}, "spec.expirationSeconds: Invalid value"),
    "timeout": ({"onTimeout": "Kill"}, "spec.onTimeout: Unsupported value"),
    "force and keep": ({"onTimeout": "ForceStop", "afterDrain": "Keep"}, "`onTimeout` may not be ForceStop when `afterDrain` is Keep"),
    "force and plan": (
        {"onTimeout": "ForceStop", "execution": "PlanOnly"},
        "`onTimeout` may not be ForceStop when `execution` is PlanOnly",
    ),
    "after": ({"afterDrain": "Resume"}, "spec.afterDrain: Unsupported value"),
    "ttl": ({"ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished: Invalid value"),
    "typing error": ({"timeoutSecond": 5}, "unknown field"),
}

CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "application": ({"applicationRef": {"name": "other"}}, "`applicationRef`"),
    "run added": ({"runId": "spark-1"}, "`runId`"),
    "mode changed": ({"mode": "CatchUp"}, "`mode`"),
    "mode removed": ({"mode": None}, "`mode`"),
    "queries": ({"queries": ["a"], "afterDrain": "Keep"}, "`queries` `afterDrain`"),
    "windows": ({"incompleteWindows": {"policy": "Discard"}}, "`incompleteWindows`"),
    "checkpoint": ({"checkpoint": {"policy": "Keep"}}, "`checkpoint`"),
    "state loss": ({"stateLossPolicy": "Accept"}, "`stateLossPolicy`"),
    "export": ({"stateExport": {"path": "p"}}, "`stateExport`"),
    "execution": ({"execution": "PlanOnly"}, "`execution`"),
    "not running": ({"ifNotRunning": "Reject"}, "`ifNotRunning`"),
    "patience": ({"acknowledgeTimeoutSeconds": 61}, "`acknowledgeTimeoutSeconds`"),
    "expiration": ({"expirationTime": "2030-01-01T00:00:00Z"}, "`expirationTime`"),
    "expiration in seconds": ({"expirationSeconds": 60}, "`expirationSeconds`"),
    "on timeout": ({"onTimeout": "ForceStop"}, "`onTimeout`"),
    "ttl": ({"ttlSecondsAfterFinished": 1}, "`ttlSecondsAfterFinished`"),
}


create, change = partial(create_in, DRAINS), partial(change_in, DRAINS)


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(api_server: ApiServer, case: str) -> None:
    body = create(api_server, drain_body("accepted", **ACCEPTED[case]))
    assert body["spec"].items() >= ACCEPTED[case].items()


@pytest.mark.parametrize("number", range(3))
def test_a_time_that_is_accepted_can_be_compared(api_server: ApiServer, number: int) -> None:
    """A rule that cannot read it would refuse every later change, that of its status as well."""
    time = ("2030-01-01T00:00:00.123456789Z", "2030-02-28T23:59:59-23:59", "0001-01-01T00:00:00Z")[number]
    create(api_server, drain_body(f"timed-{number}", expirationTime=time), dry_run=False)
    assert change(api_server, f"timed-{number}", {"cancel": True})["spec"]["cancel"] is True


def test_nothing_is_filled_in(api_server: ApiServer) -> None:
    assert create(api_server, drain_body("plain"))["spec"].keys() == {"applicationRef"}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(api_server: ApiServer, case: str) -> None:
    spec, words = REFUSED[case]
    with pytest.raises(ApiError) as caught:
        create(api_server, drain_body("refused", **spec))
    assert caught.value.status in (400, 422)
    assert words in caught.value.message


def test_a_name_too_long_for_the_result_is_refused(api_server: ApiServer) -> None:
    with pytest.raises(ApiError, match=r"metadata\.name must be at most 200 characters long"):
        create(api_server, drain_body("x" * 201))


@pytest.fixture(scope="module")
def present(api_server: ApiServer) -> str:
    create(api_server, drain_body("present", mode="Drain"), dry_run=False)
    return "present"


def test_a_rule_that_came_later_leaves_the_switches_of_older_objects(api_server: ApiServer) -> None:
    """The definition of before is installed under another group."""
    definition = yaml.load((ROOT / "crds/pipelinedrain.yaml").read_text(), Loader=yaml.CSafeLoader)
    definition["spec"]["group"] = "older.sparkdrain.io"
    definition["metadata"] = {"name": "pipelinedrains.older.sparkdrain.io"}
    rules = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"]
    later = next(rule for rule in rules if "PlanOnly" in rule["rule"])
    rules.remove(later)
    drains = DRAINS.format("default").replace("sparkdrain.io", "older.sparkdrain.io")
    body = drain_body("old", execution="PlanOnly", onTimeout="ForceStop") | {"apiVersion": "older.sparkdrain.io/v1alpha1"}
    request = api_server.client.request
    request("POST", DEFINITIONS, body=definition)
    try:
        eventually(lambda: _granted(request, "POST", drains, body=body), "the definition is served")
        rules.append(later)
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        definition["metadata"]["resourceVersion"] = request("GET", path)["metadata"]["resourceVersion"]
        request("PUT", path, body=definition)
        body["metadata"]["name"] = "new"
        eventually(lambda: not _granted(request, "POST", drains, body=body, query={"dryRun": "All"}), "the rule holds")
        changed = request("PATCH", f"{drains}/old", body={"spec": {"cancel": True, "timeoutSeconds": 9}}, content_type=MERGE_PATCH)
        assert changed["spec"]["cancel"]
    finally:
        request("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")


def _granted(request: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    try:
        request(*arguments, **named)
    except ApiError:
        return False
    return True


@pytest.mark.parametrize("case", CHANGED)
def test_the_spec_does_not_change(api_server: ApiServer, present: str, case: str) -> None:
    spec, names = CHANGED[case]
    with pytest.raises(ApiError) as caught:
        change(api_server, present, spec, dry_run=True)
    assert caught.value.status == 422
    assert f"create another PipelineDrain instead. Changed: {names}" in caught.value.message


def test_the_timeout_and_the_switches_change(api_server: ApiServer) -> None:
    create(api_server, drain_body("switched", execution="AfterApproval", timeoutSeconds=600), dry_run=False)
    change(api_server, "switched", {"timeoutSeconds": 900})
    change(api_server, "switched", {"timeoutSeconds": None})
    change(api_server, "switched", {"approved": False})
    change(api_server, "switched", {"approved": True, "cancel": True})
    for name in ("approved", "cancel"):
        for value in (False, None):
            with pytest.raises(ApiError, match=f"Changed: `{name}`"):
                change(api_server, "switched", {name: value})


@pytest.mark.parametrize("path", sorted((ROOT / "examples/drains").glob("*.yaml")), ids=lambda path: path.stem)
def test_samples_are_accepted(api_server: ApiServer, path: Path) -> None:
    for body in yaml.safe_load_all(path.read_text()):
        create(api_server, body)


def test_there_are_samples() -> None:
    assert len(list((ROOT / "examples/drains").glob("*.yaml"))) >= 5


def test_explain_knows_the_fields(api_server: ApiServer) -> None:
    text = api_server.run_kubectl("explain", "pipelinedrain.spec.checkpoint.policy")
    assert "ready for an incompatible version" in " ".join(text.split())
