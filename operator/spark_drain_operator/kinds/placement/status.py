"""The status of an ExecutorPlacement: read, changed during a pass, written once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from spark_drain_operator.clock import read_time
from spark_drain_operator.engine.conditions import Conditions
from spark_drain_operator.engine.status import BasePhase, Status, known
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
    batch_query: str = ""
    first_batch_ms: int | None = None
    ordinary_batch_ms: int | None = None
    withdrawal_reason: str = ""
    withdrawal_time: datetime | None = None

    @classmethod
    def read(cls, body: Mapping[str, Any], now: datetime) -> PlacementStatus:
        """Read the status of an object; a new object has an empty one."""
        status = body.get("status") or {}
        request, withdrawal = status.get("request") or {}, status.get("withdrawal") or {}
        executor, replacement, batch = (status.get(name) or {} for name in ("executor", "replacement", "firstBatch"))
        return cls(
            **cls.common(body, now, Phase, _TYPES),
            status_code=status.get("statusCode", ""),
            application_uid=(status.get("application") or {}).get("uid", ""),
            run_id=(status.get("run") or {}).get("id", ""),
            request_id=request.get("uuid", ""),
            request_time=read_time(request.get("createdAt")),
            executor_id=executor.get("id", ""),
            executor_node=executor.get("nodeName", ""),
            new_executor_id=replacement.get("id", ""),
            new_node=replacement.get("nodeName", ""),
            batch_query=batch.get("query", ""),
            first_batch_ms=batch.get("milliseconds"),
            ordinary_batch_ms=batch.get("ordinaryMilliseconds"),
            withdrawal_reason=withdrawal.get("reason", ""),
            withdrawal_time=read_time(withdrawal.get("requestedAt")),
        )

    def as_object(self) -> dict[str, Any]:
        """Return the form of the API, without what is not known."""
        status: dict[str, Any] = {
            **self.common_object(),
            "statusCode": self.status_code,
            "application": known(uid=self.application_uid),
            "run": known(id=self.run_id),
            "request": known(uuid=self.request_id, createdAt=self.request_time),
            "executor": known(id=self.executor_id, nodeName=self.executor_node),
            "replacement": known(id=self.new_executor_id, nodeName=self.new_node),
            "firstBatch": known(query=self.batch_query, milliseconds=self.first_batch_ms, ordinaryMilliseconds=self.ordinary_batch_ms),
            "withdrawal": known(reason=self.withdrawal_reason, requestedAt=self.withdrawal_time),
        }
        return {name: value for name, value in status.items() if value not in (None, "", {}, [])}
