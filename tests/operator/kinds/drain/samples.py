"""What decisions are tested with."""

from datetime import UTC, datetime, timedelta
from typing import Any

from spark_drain_operator.applications.kubeflow import activity_of
from spark_drain_operator.applications.protocol import Activity, Application, ApplicationRef
from spark_drain_operator.kinds.drain.spec import DrainSpec
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_operator.storage.pods import DriverPod
from spark_drain_store import DrainNotification, DrainReport, DrainState

NOW = datetime(2030, 1, 1, tzinfo=UTC)


REF = ApplicationRef("sparkoperator.k8s.io/v1beta2", "SparkApplication", "app")


def spec(**fields: Any) -> DrainSpec:
    return DrainSpec(application=REF, **{"options": {}, **fields})


def status(**fields: Any) -> DrainStatus:
    return DrainStatus(generation=1, now=NOW, **fields)


def driver(run_id: str = "one", phase: str = "Running", *, terminating: bool = False, uid: str = "") -> DriverPod:
    return DriverPod("app-driver", uid or f"uid-{run_id}", run_id, phase, terminating, NOW if phase == "Running" else None, NOW)


def application(
    state: str = "RUNNING", *drivers: DriverPod, suspend: bool = False, uid: str = "app-uid", activity: Activity | None = None
) -> Application:
    return Application(
        "app", uid, "1", 1, None, "digest", False, state, activity or activity_of(state, suspend_requested=suspend), suspend, drivers
    )


def report(state: DrainState, **fields: Any) -> DrainReport:
    return DrainReport(**{"drain_id": "mine", "runs": ("one",), "state": state, "updated_at": NOW, **fields})


def notification(drain_id: str, **fields: Any) -> DrainNotification:
    return DrainNotification(drain_id=drain_id, created_at=NOW, **fields)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)
