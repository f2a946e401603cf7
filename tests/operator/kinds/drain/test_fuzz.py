"""Whatever an agent reports and a spec says, a pass ends with a status; what fails twice for one reason is Stalled."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from spark_drain_operator.engine.reconciler import Reconciler
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain import progress
from spark_drain_operator.kinds.drain.kind import DrainKind
from spark_drain_operator.kinds.drain.phases import settle
from spark_drain_operator.kinds.drain.reasons import Phase
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster
from spark_drain_store import DrainReport, DrainState, MalformedMessageError, StoreError
from spark_drain_store.channel import config_map_names
from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient

from tests.operator.conftest import condition
from tests.operator.kinds.drain.samples import NOW
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.operator.strategies import NUMBERS, SECONDS, TEXT, TIMES, objects
from tests.support.apiserver import DRAINS, ROOT, ApiServer, drain_body

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(5400)]

_DEFINITION = yaml.safe_load((ROOT / "crds/pipelinedrain.yaml").read_text())["spec"]["versions"][0]
SCHEMA = jsonschema.Draft7Validator(_DEFINITION["schema"]["openAPIV3Schema"]["properties"]["status"])
SAMPLE, PART, PARTS = 60, 1_000, 10
OPERATORS = st.fixed_dictionaries({"name": TEXT, "disposition": TEXT, "rowsBefore": NUMBERS, "rowsAfter": NUMBERS})
_TEXTS = ("id", "name", "state", "checkpointLocation", "checkpointPolicy", "sink", "archive", "message", "sideOutput")
QUERIES = st.fixed_dictionaries(
    {
        **dict.fromkeys(_TEXTS, TEXT),
        **dict.fromkeys(("lastBatchId", "flushBatchId", "watermarkMs"), NUMBERS),
        "endOffsets": st.dictionaries(TEXT, TEXT, max_size=20),
        "operators": st.lists(OPERATORS, max_size=3),
        "warnings": st.lists(TEXT, max_size=20),
        "dependsOn": st.lists(TEXT, max_size=3),
    }
)
REPORTS = objects(
    {
        "state": st.sampled_from([state.value for state in DrainState]),
        "reason": TEXT,
        "message": TEXT,
        "updatedAt": st.just("2030-01-01T00:00:00Z"),
        "sequence": NUMBERS,
        "runs": st.lists(TEXT, max_size=3),
        "driverPodUid": TEXT,
        "driverPodName": TEXT,
        "withdrawal": st.sampled_from(["", "Withdrawn", "TooLate"]) | TEXT,
        "queries": st.lists(QUERIES, max_size=3),
        "executorsExpected": NUMBERS,
        "executorsDrained": TEXT | st.sampled_from(["1-2", "1-9223372036854775807", "2-1"]),
        "executorExceptions": st.lists(st.fixed_dictionaries({"id": TEXT, "state": TEXT, "detail": TEXT}), max_size=3),
        "timings": st.dictionaries(TEXT, SECONDS, max_size=3),
    }
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "runId": TEXT,
        "mode": st.sampled_from(["Drain", "CatchUp", "Stop"]),
        "queries": st.lists(TEXT, max_size=3),
        "execution": st.sampled_from(["Immediate", "AfterApproval", "PlanOnly"]),
        "ifNotRunning": st.sampled_from(["Wait", "Succeed", "Reject"]),
        "onTimeout": st.sampled_from(["Fail", "ForceStop"]),
        "afterDrain": st.sampled_from(["Suspend", "Restart", "Keep", "Delete"]),
        "acknowledgeTimeoutSeconds": st.integers(1, 2**31 - 1),
        "timeoutSeconds": st.integers(1, 2**31 - 1),
        "ttlSecondsAfterFinished": st.integers(0, 2**31 - 1),
        "expirationTime": TIMES,
        "expirationSeconds": NUMBERS,
        "cancel": st.booleans(),
        "approved": st.booleans(),
        "stateLossPolicy": st.sampled_from(["Refuse", "Accept"]),
    },
)


@given(report=REPORTS)
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
def test_whatever_is_reported_the_definition_takes_the_status(report: dict[str, Any]) -> None:
    try:
        read = DrainReport.from_json("mine", json.dumps({"version": 1, "uuid": "mine", **report}))
    except MalformedMessageError:
        return
    status = DrainStatus(generation=1, now=NOW)
    progress.fill(status, read)
    settle(status, Ending(Phase.FAILED, read.reason or "Failed", read.message))
    found = json.loads(json.dumps(status.as_object()))
    errors = [f"{error.json_path}: {error.message[:200]}" for error in SCHEMA.iter_errors(found)]
    assert not errors
    for rows, key in ((found.get("queries"), "id"), (found.get("timings"), "step"), (found.get("executorExceptions"), "id")):
        keys = [row[key] for row in rows or []]
        assert len(keys) == len(set(keys)), "keys of a list of type map"


@dataclass
class Desk:
    """One application after the other, and an operator in this process."""

    client: KubeClient
    namespace: str
    number: int = 0

    def reconciler(self) -> Reconciler[Any, Any, Any]:
        cluster = Cluster.over(self.client)
        return Reconciler(DrainKind(cluster, Settings(allow_delete=True)), cluster)

    def drain(self, reconciler: Reconciler[Any, Any, Any], spec: dict[str, Any], report: dict[str, Any] | None) -> None:
        """Bring a drain forward, let it be reported on, and look at it again."""
        self.number += 1
        name = f"app-{self.number}"
        try:
            body = drain_body(name, **spec)
            body["spec"]["applicationRef"]["name"] = name
            uid = self.client.request("POST", DRAINS.format(self.namespace), body=body)["metadata"]["uid"]
        except ValueError:
            return  # no JSON of the API: NaN
        except ApiError as error:
            if error.status not in (400, 422):
                raise
            return
        application = ScriptedApplication(self.client, self.namespace, name).create()
        application.start(executors=0)
        self.look(reconciler, name)
        if report is not None:
            entry = json.dumps({"version": 1, "uuid": uid, **report})
            reports = f"/api/v1/namespaces/{self.namespace}/configmaps/{config_map_names(name)[1]}"
            try:
                self.client.request("PATCH", reports, body={"data": {f"drain-v1.{uid}": entry}}, content_type=MERGE_PATCH)
            except ApiError as error:
                if error.status != 404:  # it has ended already
                    raise
            for _ in range(3):
                self.look(reconciler, name)
        application.end_pods()
        application.delete()

    def look(self, reconciler: Reconciler[Any, Any, Any], name: str) -> None:
        """Do what a worker does."""
        failed = ""
        for _ in range(3):
            try:
                reconciler.reconcile(self.namespace, name)
            except (ApiError, StoreError) as error:
                failed = str(error)
            else:
                break
        else:
            reconciler.tell_failure(self.namespace, name, failed)
        try:
            found = self.client.request("GET", f"{DRAINS.format(self.namespace)}/{name}")
        except ApiError as error:
            if error.status != 404:  # its time after the end was over
                raise
            return
        stalled = condition(found, "Stalled")
        assert stalled is not None, found.get("status")
        assert not failed or stalled["status"] == "True", (failed, found["status"])


@pytest.fixture
def desk(api_server: ApiServer, namespace: str) -> Desk:
    return Desk(api_server.client, namespace)


@pytest.mark.parametrize(
    ("examples", "part"), [(SAMPLE, 0), *(pytest.param(PART, part, marks=pytest.mark.soak) for part in range(1, PARTS + 1))]
)
def test_whatever_is_said_a_drain_has_a_status(desk: Desk, examples: int, part: int) -> None:
    """Ten thousand in all, each part in a namespace of its own: lists do not grow, and workers share the parts."""
    reconciler = desk.reconciler()

    @seed(part)
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(spec=SPECS | st.just({}), report=st.none() | REPORTS)
    def drained(spec: dict[str, Any], report: dict[str, Any] | None) -> None:
        desk.drain(reconciler, spec, report)

    drained()
