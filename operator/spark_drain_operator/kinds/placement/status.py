"""The status of an ExecutorPlacement: read, changed during a pass, written once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from spark_drain_operator.clock import read_time
from spark_drain_operator.engine.conditions import MAX_MESSAGE, Condition, Conditions
from spark_drain_operator.engine.status import BasePhase, Ending, Status, known
from spark_drain_operator.kinds.placement.reasons import ConditionType, Phase

__all__ = ["PlacementStatus"]

_TYPES = tuple(ConditionType)


@dataclass(kw_only=True)
class PlacementStatus(Status):
    """What a placement's status has beside that of every kind."""

    phase: BasePhase = Phase.PENDING
    conditions: Conditions = field(default_factory=lambda: Conditions(_TYPES))
    status_code: str = ""
    application_uid: str = ""
    run_id: str = ""
    request_id: str = ""
    request_time: datetime | None = None
    executor_id: str = ""
    executor_node: str = ""
    new_executor_id: str = ""
    new_node: str = ""
    withdrawal_reason: str = ""
    withdrawal_time: datetime | None = None

    @classmethod
    def read(cls, body: Mapping[str, Any], now: datetime) -> PlacementStatus:
        """Read the status of an object; a new object has an empty one."""
        status = body.get("status") or {}
        request, withdrawal = status.get("request") or {}, status.get("withdrawal") or {}
        executor, replacement = status.get("executor") or {}, status.get("replacement") or {}
        return cls(
            generation=body["metadata"].get("generation", 0),
            now=now,
            phase=_phase(status.get("phase")),
            message=status.get("message", ""),
            conditions=Conditions(_TYPES, (Condition.from_object(item, now) for item in status.get("conditions") or [])),
            status_code=status.get("statusCode", ""),
            application_uid=(status.get("application") or {}).get("uid", ""),
            run_id=(status.get("run") or {}).get("id", ""),
            request_id=request.get("uuid", ""),
            request_time=read_time(request.get("createdAt")),
            executor_id=executor.get("id", ""),
            executor_node=executor.get("nodeName", ""),
            new_executor_id=replacement.get("id", ""),
            new_node=replacement.get("nodeName", ""),
            withdrawal_reason=withdrawal.get("reason", ""),
            withdrawal_time=read_time(withdrawal.get("requestedAt")),
            outcome=Ending.from_object(status.get("outcome"), Phase),
            completion_time=read_time(status.get("completionTime")),
        )

    def as_object(self) -> dict[str, Any]:
        """Return the form of the API, without what is not known."""
        status: dict[str, Any] = {
            "observedGeneration": self.generation,
            "phase": str(self.phase),
            "message": self.message[:MAX_MESSAGE],
            "statusCode": self.status_code,
            "conditions": [condition.as_object() for condition in self.conditions],
            "application": known(uid=self.application_uid),
            "run": known(id=self.run_id),
            "request": known(uuid=self.request_id, createdAt=self.request_time),
            "executor": known(id=self.executor_id, nodeName=self.executor_node),
            "replacement": known(id=self.new_executor_id, nodeName=self.new_node),
            "withdrawal": known(reason=self.withdrawal_reason, requestedAt=self.withdrawal_time),
            "outcome": self.outcome and self.outcome.as_object(),
            **known(completionTime=self.completion_time),
        }
        return {name: value for name, value in status.items() if value not in (None, "", {}, [])}


def _phase(text: str | None) -> Phase:
    try:
        return Phase(text or Phase.PENDING)
    except ValueError:  # of a later version
        return Phase.PENDING
