"""The status of a PipelineDrain: read, changed during a pass, written once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from spark_drain_operator.clock import read_time
from spark_drain_operator.engine.conditions import Conditions
from spark_drain_operator.engine.status import BasePhase, Ending, Status, known
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason

__all__ = ["DrainStatus"]


_TYPES = tuple(ConditionType)


@dataclass(kw_only=True)
class DrainStatus(Status):
    """What a drain's status has beside that of every kind."""

    phase: BasePhase = Phase.PENDING
    conditions: Conditions = field(default_factory=lambda: Conditions(_TYPES))
    plan: dict[str, Any] = field(default_factory=dict)
    application_uid: str = ""
    spec_digest: str = ""
    changed_digest: str = ""
    changed_time: datetime | None = None
    seen_run_id: str = ""
    next_run_id: str = ""
    application_state: str = ""
    run_id: str = ""
    driver_pod_name: str = ""
    driver_pod_uid: str = ""
    drain_id: str = ""
    notification_attempt: int = 0
    notification_time: datetime | None = None
    withdrawal: Ending | None = None
    withdrawal_time: datetime | None = None
    scale_down_time: datetime | None = None
    scale_down_state: str = ""
    restart_generation: int = 0
    progress: dict[str, Any] = field(default_factory=dict)
    queries: list[dict[str, Any]] = field(default_factory=list)
    executor_exceptions: list[dict[str, Any]] = field(default_factory=list)
    creation_time: datetime | None = None
    start_time: datetime | None = None
    timings: list[dict[str, Any]] = field(default_factory=list)
    result_name: str = ""

    @classmethod
    def read(cls, body: Mapping[str, Any], now: datetime) -> DrainStatus:
        """Read the status of an object; a new object has an empty one."""
        status = body.get("status") or {}
        application, run = status.get("application") or {}, status.get("run") or {}
        change = status.get("nextVersion") or {}
        notification, scale_down = status.get("notification") or {}, status.get("scaleDown") or {}
        withdrawal = status.get("withdrawal") or {}
        return cls(
            **cls.common(body, now, Phase, _TYPES),
            plan=dict(status.get("plan") or {}),
            application_uid=application.get("uid", ""),
            spec_digest=application.get("specDigest", ""),
            changed_digest=change.get("specDigest", ""),
            changed_time=read_time(change.get("seenAt")),
            seen_run_id=application.get("runId", ""),
            next_run_id=change.get("runId", ""),
            application_state=application.get("state", ""),
            run_id=run.get("id", ""),
            driver_pod_name=run.get("driverPodName", ""),
            driver_pod_uid=run.get("driverPodUID", ""),
            drain_id=notification.get("uuid", ""),
            notification_attempt=notification.get("attempt", 0),
            notification_time=read_time(notification.get("createdAt")),
            withdrawal=Ending.from_object(withdrawal, Phase),
            withdrawal_time=read_time(withdrawal.get("requestedAt")),
            scale_down_time=read_time(scale_down.get("requestedAt")),
            scale_down_state=scale_down.get("applicationState", ""),
            restart_generation=scale_down.get("restartGeneration", 0),
            progress=dict(status.get("progress") or {}),
            queries=list(status.get("queries") or []),
            executor_exceptions=list(status.get("executorExceptions") or []),
            creation_time=read_time(body["metadata"].get("creationTimestamp")),
            start_time=read_time(status.get("startTime")),
            timings=list(status.get("timings") or []),
            result_name=(status.get("resultRef") or {}).get("name", ""),
        )

    @property
    def answered(self) -> bool:
        """Whether an agent has ever reported: each report fills the progress."""
        return bool(self.progress)

    @property
    def forced(self) -> bool:
        """Whether the application is to be stopped by force."""
        return self.withdrawal is not None and self.withdrawal.phase is Phase.FORCE_STOPPED

    @property
    def wish(self) -> Ending | None:
        """How somebody wants the drain to end; None also where the wish came too late."""
        return self.withdrawal if self.withdrawal is not None and self.withdrawal.reason != Reason.WITHDRAWAL_TOO_LATE else None

    def as_object(self) -> dict[str, Any]:
        """Return the form of the API, without what is not known."""
        status: dict[str, Any] = {
            **self.common_object(),
            "plan": self.plan,
            "application": known(
                uid=self.application_uid, state=self.application_state, specDigest=self.spec_digest, runId=self.seen_run_id
            ),
            "nextVersion": known(specDigest=self.changed_digest, seenAt=self.changed_time, runId=self.next_run_id),
            "run": known(id=self.run_id, driverPodName=self.driver_pod_name, driverPodUID=self.driver_pod_uid),
            "notification": known(uuid=self.drain_id, attempt=self.notification_attempt, createdAt=self.notification_time),
            "withdrawal": self.withdrawal and {**self.withdrawal.as_object(), **known(requestedAt=self.withdrawal_time)},
            "scaleDown": known(
                requestedAt=self.scale_down_time, applicationState=self.scale_down_state, restartGeneration=self.restart_generation
            ),
            "progress": self.progress,
            "queries": self.queries,
            "executorExceptions": self.executor_exceptions,
            "timings": self.timings,
            "resultRef": known(name=self.result_name),
            **known(startTime=self.start_time),
        }
        return {name: value for name, value in status.items() if value not in (None, "", {}, [])}
