"""Health in Argo CD, by its Lua, for every state of each kind."""

from typing import Any

import pytest
from spark_drain_operator.kinds.drain.reasons import Phase
from spark_drain_operator.kinds.placement.reasons import Phase as PlacementPhase

from tests.gitops.conftest import Lua
from tests.gitops.objects import application, application_states, drain, placement

DYNAMIC = {"dynamicAllocation": {"enabled": True, "minExecutors": 1}}
SUSPENDED = {"suspend": True}
# state, states of the executors, what the spec has, health, part of the message
APPLICATIONS: list[tuple[str, tuple[str, ...], dict[str, Any], str, str]] = [
    ("", (), {}, "Progressing", "waiting to be submitted"),
    ("SUBMITTED", (), {}, "Progressing", "driver is starting"),
    ("RUNNING", (), {}, "Progressing", "0 of 2 executors are running"),
    ("RUNNING", ("RUNNING", "PENDING"), {}, "Progressing", "1 of 2 executors are running"),
    ("RUNNING", ("RUNNING", "RUNNING"), {}, "Healthy", "the driver and 2 executors are running"),
    ("RUNNING", ("RUNNING", "RUNNING", "RUNNING"), {}, "Healthy", "3 executors"),
    ("RUNNING", ("RUNNING", "COMPLETED", "FAILED", "RUNNING"), {}, "Healthy", "2 executors"),
    ("RUNNING", (), {"executor": {}}, "Progressing", "0 of 1 executors"),
    ("RUNNING", ("RUNNING",), {"executor": {}, "sparkConf": {"spark.executor.instances": "3"}}, "Progressing", "1 of 3 executors"),
    ("RUNNING", (), DYNAMIC, "Progressing", "0 of 1 executors"),
    ("RUNNING", ("RUNNING",), DYNAMIC, "Healthy", "1 executors"),
    ("RUNNING", (), {"sparkConf": {"spark.dynamicAllocation.enabled": "true"}}, "Healthy", "0 executors"),
    ("RUNNING", (), {"sparkConf": {"spark.streaming.dynamicAllocation.enabled": "true"}}, "Healthy", "0 executors"),
    ("COMPLETED", ("COMPLETED",), {}, "Healthy", "completed"),
    ("FAILED", (), {}, "Degraded", "driver container failed"),
    ("SUBMISSION_FAILED", (), {}, "Degraded", "driver container failed"),
    ("PENDING_RERUN", (), {}, "Progressing", "submitted again"),
    ("INVALIDATING", ("RUNNING",), {}, "Progressing", "old driver is being deleted"),
    ("SUCCEEDING", ("RUNNING",), {}, "Progressing", "executors are ending"),
    ("FAILING", ("RUNNING",), {}, "Degraded", "driver container failed"),
    ("SUSPENDING", ("RUNNING", "RUNNING"), SUSPENDED, "Progressing", "terminating"),
    ("SUSPENDED", (), SUSPENDED, "Suspended", "its pods are gone or about to end"),
    ("SUSPENDED", (), {"suspend": False}, "Progressing", "about to be submitted again"),
    ("RESUMING", (), {}, "Progressing", "submitted again"),
    ("UNKNOWN", ("UNKNOWN",), {}, "Progressing", "not known"),
    ("HIBERNATING", (), {}, "Unknown", "HIBERNATING"),
]


def test_the_table_has_every_state_that_kubeflow_knows() -> None:
    assert set(application_states()) == {state for state, *_ in APPLICATIONS} - {"HIBERNATING"}


def test_health_of_applications(lua: Lua) -> None:
    for state, executors, spec, health, message in APPLICATIONS:
        found = lua("health", "SparkApplication/health.lua", application(state, *executors, **spec))
        assert (found["status"], message in found["message"]) == (health, True), (state, executors, spec, found)


def test_health_of_an_application_without_a_status_or_parts_of_it(lua: Lua) -> None:
    bare = application("RUNNING")
    del bare["status"]["executorState"], bare["spec"]["executor"]
    empty = application(None)
    failed = application("FAILED")
    failed["status"]["applicationState"]["errorMessage"] = ""
    found = [lua("health", "SparkApplication/health.lua", body) for body in (empty, {**empty, "status": {}}, bare, failed)]
    assert [each["status"] for each in found] == ["Progressing", "Progressing", "Progressing", "Degraded"]
    assert found[3]["message"] == "failed (state FAILED)"


def test_health_of_drains(lua: Lua) -> None:
    def health(body: dict[str, Any]) -> tuple[str, str]:
        found = lua("health", "PipelineDrain/health.lua", body)
        return found["status"], found["message"]

    for phase in Phase:
        wanted = "Suspended" if phase is Phase.AWAITING_APPROVAL else "Progressing"
        if phase.terminal:
            wanted = "Healthy" if phase.successful else "Degraded"
        assert health(drain(phase)) == (wanted, f"{phase}: about {phase}")


@pytest.mark.parametrize("hook", ["PreSync", "PreDelete", "PreSync,PreDelete"])
def test_a_hook_that_waits_for_approval_is_waited_for(lua: Lua, hook: str) -> None:
    """Argo CD goes on to delete when none of its PreDelete hooks is Progressing any more."""
    body = drain(Phase.AWAITING_APPROVAL)
    body["metadata"]["annotations"] = {"argocd.argoproj.io/hook": hook}
    assert lua("health", "PipelineDrain/health.lua", body)["status"] == "Progressing"


@pytest.mark.parametrize("annotation", [{"argocd.argoproj.io/hook": "PreSync"}, {"helm.sh/hook": "pre-install,pre-upgrade"}])
def test_a_hook_that_only_plans_does_not_let_the_sync_go_on(lua: Lua, annotation: dict[str, str]) -> None:
    body = drain(Phase.PLANNED)
    body["metadata"]["annotations"] = annotation
    found = lua("health", "PipelineDrain/health.lua", body)
    assert (found["status"], "nothing is drained" in found["message"]) == ("Degraded", True)


@pytest.mark.parametrize("status", [None, {}, {"observedGeneration": -1}, {"phase": "Pending"}, {"phase": "Pending", "message": ""}])
def test_a_drain_without_a_status_or_parts_of_it_is_progressing(lua: Lua, status: dict[str, Any] | None) -> None:
    body = drain(None)
    body["status"] = status
    if status is None:
        del body["status"]
    assert lua("health", "PipelineDrain/health.lua", body)["status"] == "Progressing"


def test_a_stalled_drain_does_not_end_the_sync(lua: Lua) -> None:
    found = lua("health", "PipelineDrain/health.lua", drain(Phase.FLUSHING, stalled=True))
    assert found == {"status": "Progressing", "message": "Flushing, stalled: about Stalled"}


def test_health_of_placements(lua: Lua) -> None:
    for phase in PlacementPhase:
        wanted = "Progressing"
        if phase.terminal:
            wanted = "Healthy" if phase.successful else "Degraded"
        found = lua("health", "ExecutorPlacement/health.lua", placement(phase))
        assert (found["status"], found["message"]) == (wanted, f"{phase}: about {phase}")
    assert lua("health", "ExecutorPlacement/health.lua", placement(None))["status"] == "Progressing"
    stalled = lua("health", "ExecutorPlacement/health.lua", placement(PlacementPhase.MOVING, stalled=True))
    assert stalled == {"status": "Progressing", "message": "Moving, stalled: about Stalled"}
