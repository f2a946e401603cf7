"""Objects in every state that their operators write."""

import re
from typing import Any

from spark_drain_operator.clock import now
from spark_drain_operator.engine.activity import mark_active
from spark_drain_operator.engine.conditions import FINISHED, RECONCILING, STALLED, SUCCEEDED
from spark_drain_operator.engine.ending import conclude
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain.phases import mark_pending
from spark_drain_operator.kinds.drain.reasons import Phase, Reason
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_operator.kinds.placement.reasons import Phase as PlacementPhase
from spark_drain_operator.kinds.placement.status import PlacementStatus

from tests.operator.kinds.drain.samples import status as new_status
from tests.support.apiserver import drain_body, placement_body, spark_application_definition


def drain_status(phase: Phase, *, stalled: bool = False) -> DrainStatus:
    """Return a status as the operator writes it in that phase."""
    status = new_status()
    mark_pending(status, "the application has not been looked at yet")
    status.phase, status.message = phase, f"about {phase}"
    for type_, value in ((SUCCEEDED, "Unknown"), (FINISHED, "False"), (RECONCILING, "True"), (STALLED, str(stalled))):
        status.set(type_, value, Reason.FLUSH_STALLED if type_ == STALLED and stalled else Reason.IN_PROGRESS, f"about {type_}")
    if phase.terminal:
        conclude(status, Ending(phase, Reason.COMPLETED, f"about {phase}"))
    return status


def drain(phase: Phase | None, *, stalled: bool = False, **spec: Any) -> dict[str, Any]:
    """Return a PipelineDrain in a phase; in none, as the API server stores a new one."""
    body = drain_body(**spec)
    body["metadata"] |= {"namespace": "pipelines", "generation": 1}
    body["status"] = {"observedGeneration": -1} if phase is None else drain_status(phase, stalled=stalled).as_object()
    return body


def placement(phase: PlacementPhase | None, *, stalled: bool = False, **spec: Any) -> dict[str, Any]:
    """Return an ExecutorPlacement in a phase; in none, as the API server stores a new one."""
    body = placement_body(executorId="1", **spec)
    body["metadata"] |= {"namespace": "pipelines", "generation": 1}
    body["status"] = {"observedGeneration": -1}
    if phase is not None:
        status = PlacementStatus(generation=1, now=now(), phase=phase)
        mark_active(status, f"about {phase}")
        if stalled:
            status.set(STALLED, "True", "AgentNotResponding", "about Stalled")
        if phase.terminal:
            conclude(status, Ending(phase, phase, f"about {phase}"))
        body["status"] = status.as_object()
    return body


def application_states() -> list[str]:
    """Return every state of kubeflow's SparkApplication, from its source."""
    types = spark_application_definition().parents[3] / "api/v1beta2/sparkapplication_types.go"
    return re.findall(r'^\s*ApplicationState\w+\s+ApplicationStateType = "(\w*)"', types.read_text(), re.MULTILINE)


def application(state: str | None, *executors: str, **spec: Any) -> dict[str, Any]:
    """Return a SparkApplication in a state; with None, one that kubeflow's operator has not seen yet."""
    body: dict[str, Any] = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "clicks", "namespace": "pipelines", "generation": 1},
        "spec": {"type": "Python", "executor": {"instances": 2}, **spec},
    }
    if state is not None:
        failed = state in ("FAILED", "FAILING", "SUBMISSION_FAILED")
        body["status"] = {
            "applicationState": {"state": state, **({"errorMessage": "driver container failed"} if failed else {})},
            "executorState": {f"clicks-exec-{number}": each for number, each in enumerate(executors)},
        }
    return body
