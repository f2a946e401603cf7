"""The spec of a PipelineDrain with its defaults resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spark_drain_store.options import MODES, OPTIONS, join_names

from spark_drain_operator.applications.protocol import ApplicationRef
from spark_drain_operator.clock import parse_time
from spark_drain_operator.engine.kind import InvalidSpecError
from spark_drain_operator.kinds.references import check_values, optional_seconds, read_reference, unreadable_spec

__all__ = ["VALUES", "DrainSpec"]

VALUES: Mapping[str, tuple[str, ...]] = {
    "mode": MODES,
    **{option.name: option.values for option in OPTIONS if option.values and option.values != ("true", "false")},
    "ifNotRunning": ("Wait", "Succeed", "Reject"),
    "onTimeout": ("Fail", "ForceStop"),
}
"""Each field with a choice, and the values of this version."""


@dataclass(frozen=True, kw_only=True)
class DrainSpec:
    """What was asked.

    Parameters
    ----------
    application
        What is drained.
    run_id
        The only run that is meant, or None.
    options
        What the agent is asked for beside the mode, only what the spec says; see `spark_drain_store.DrainOptions`.
    mode, execution, if_not_running, on_timeout, after_drain
        Policies, defaults resolved.
    cancel, approved
        The two switches.
    acknowledge_timeout, timeout, ttl
        Seconds; ``ttl`` None keeps the object.
    expiration
        UTC time, or None.
    expiration_seconds
        The same, counted from the object's creation, or None.
    """

    application: ApplicationRef
    run_id: str | None = None
    mode: str = "Drain"
    options: Mapping[str, str]
    execution: str = "Immediate"
    if_not_running: str = "Wait"
    on_timeout: str = "Fail"
    after_drain: str = "Suspend"
    cancel: bool = False
    approved: bool = False
    acknowledge_timeout: int = 60
    timeout: int = 1800
    ttl: int | None = None
    expiration: datetime | None = None
    expiration_seconds: int | None = None

    @property
    def awaits_approval(self) -> bool:
        """Whether nothing may be touched until somebody approves it."""
        return self.execution == "AfterApproval" and not self.approved

    @property
    def stops_by_force(self) -> bool:
        """Whether the application is suspended undrained at the deadline; a drain that touches nothing stops nothing either."""
        return self.on_timeout == "ForceStop" and self.execution != "PlanOnly" and not self.awaits_approval

    @classmethod
    def parse(cls, spec: Mapping[str, Any]) -> DrainSpec:
        """Read the ``spec`` of an object that the API server has validated.

        Raises
        ------
        InvalidSpecError
            A field is missing, or has another form, or a value that this version does not know.
        """
        try:
            check_values(spec, VALUES)
            return cls(
                application=read_reference(spec),
                run_id=spec.get("runId"),
                mode=spec.get("mode", "Drain"),
                options=_options(spec),
                execution=spec.get("execution", "Immediate"),
                if_not_running=spec.get("ifNotRunning", "Wait"),
                on_timeout=spec.get("onTimeout", "Fail"),
                after_drain=spec.get("afterDrain", "Suspend"),
                cancel=bool(spec.get("cancel", False)),
                approved=bool(spec.get("approved", False)),
                acknowledge_timeout=int(spec.get("acknowledgeTimeoutSeconds", 60)),
                timeout=int(spec.get("timeoutSeconds", 1800)),
                ttl=optional_seconds(spec, "ttlSecondsAfterFinished"),
                expiration_seconds=optional_seconds(spec, "expirationSeconds"),
                expiration=_time("expirationTime", spec.get("expirationTime")),
            )
        except InvalidSpecError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise unreadable_spec(error) from error

    def plan(self) -> dict[str, Any]:
        """Return ``status.plan``: the policies in force."""
        plan: dict[str, Any] = {
            "mode": self.mode,
            "stateLossPolicy": self.options.get("stateLossPolicy", "Refuse"),
            "execution": self.execution,
            "ifNotRunning": self.if_not_running,
            "onTimeout": self.on_timeout,
            "afterDrain": self.after_drain,
            "acknowledgeTimeoutSeconds": self.acknowledge_timeout,
            "timeoutSeconds": self.timeout,
        }
        if self.mode != "Stop":
            plan["incompleteWindows"] = self.options.get("incompleteWindows.policy", "Emit")
            plan["checkpoint"] = self.options.get("checkpoint.policy", "Auto")
        return plan


def _time(field: str, text: str | None) -> datetime | None:
    """Return a time; the API server takes some that no calendar has."""
    try:
        return None if text is None else parse_time(text)
    except ValueError as error:
        raise InvalidSpecError(f"spec.{field} {text!r} cannot be read: {error}") from error


_OPTIONS = {
    "incompleteWindows.policy": ("incompleteWindows", "policy"),
    "incompleteWindows.sideOutput.path": ("incompleteWindows", "sideOutput", "path"),
    "incompleteWindows.sideOutput.format": ("incompleteWindows", "sideOutput", "format"),
    "checkpoint.policy": ("checkpoint", "policy"),
    "checkpoint.acceptBatchIdRestart": ("checkpoint", "acceptBatchIdRestart"),
    "checkpoint.retainArchives": ("checkpoint", "retainArchives"),
    "stateLossPolicy": ("stateLossPolicy",),
    "stateExport.path": ("stateExport", "path"),
    "execution": ("execution",),
    "afterDrain": ("afterDrain",),
}


def _options(spec: Mapping[str, Any]) -> dict[str, str]:
    options = {}
    for name, path in _OPTIONS.items():
        value: Any = spec
        for part in path:
            value = value.get(part) if value is not None else None
        if value is not None:
            options[name] = str(value).lower() if isinstance(value, bool) else str(value)
    if spec.get("queries"):
        options["queries"] = join_names(spec["queries"])
    return options
