"""Step: the run, and the executor that is meant."""

from __future__ import annotations

from collections.abc import Sequence

from spark_drain_operator.applications.protocol import Application
from spark_drain_operator.engine.outcome import DONE, Outcome, ended
from spark_drain_operator.kinds.placement.observation import PlacementPass
from spark_drain_operator.kinds.placement.reasons import Phase, Reason, message_of
from spark_drain_operator.kinds.placement.spec import PlacementSpec
from spark_drain_operator.storage.pods import DriverPod, PodName

__all__ = ["executor_of", "find_driver", "run"]

_SHOWN = 10


def find_driver(spec: PlacementSpec, application: Application | None, namespace: str) -> Outcome | DriverPod:
    """Return the driver whose executor is meant, or how the placement ends without one."""
    ref = spec.application
    if application is None:
        message = message_of(Reason.APPLICATION_NOT_FOUND, kind=ref.kind, name=ref.name, namespace=namespace)
        return ended(Phase.REJECTED, Reason.APPLICATION_NOT_FOUND, message)
    driver = application.serving_driver
    if driver is None or not driver.run_id:
        message = message_of(Reason.APPLICATION_NOT_RUNNING, kind=ref.kind, name=ref.name, state=application.state or "New")
        return ended(Phase.REJECTED, Reason.APPLICATION_NOT_RUNNING, message)
    if spec.run_id not in (None, driver.run_id):
        return ended(Phase.REJECTED, Reason.STALE_RUN_ID, message_of(Reason.STALE_RUN_ID, wanted=spec.run_id, found=driver.run_id))
    return driver


def executor_of(spec: PlacementSpec, run_id: str, pods: Sequence[PodName]) -> Outcome | str:
    """Return the id of the executor that is meant, or how the placement ends: the agent judges an id, only the cluster knows a pod."""
    if spec.executor_id:
        return spec.executor_id
    found = next((pod.executor_id for pod in pods if pod.name == spec.pod_name), "")
    if found:
        return found
    names = sorted(pod.name for pod in pods)
    shown = (", ".join(names[:_SHOWN]) or "none") + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    message = message_of(Reason.EXECUTOR_NOT_FOUND, run=run_id, pod=spec.pod_name, pods=shown)
    return ended(Phase.REJECTED, Reason.EXECUTOR_NOT_FOUND, message)


def run(placement: PlacementPass) -> Outcome:
    """Remember application, run and executor, until the request is written."""
    status, application, spec = placement.status, placement.application, placement.spec
    if placement.begun:
        return DONE
    driver = find_driver(spec, application, placement.namespace)
    if not isinstance(driver, DriverPod):
        return driver
    assert application is not None
    if status.run_id not in ("", driver.run_id):  # an executor of that id in a later run is another one
        return ended(Phase.FAILED, Reason.RUN_ENDED, message_of(Reason.RUN_ENDED, run=status.run_id, state=application.state))
    pods = placement.adapter.running_executors(placement.namespace, driver.run_id) if spec.pod_name else ()
    executor = executor_of(spec, driver.run_id, pods)
    if not isinstance(executor, str):
        return executor
    status.application_uid, status.run_id, status.executor_id = application.uid, driver.run_id, executor
    return DONE
