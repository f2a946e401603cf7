"""The spec of an ExecutorPlacement with its defaults resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_drain_store.placement_messages import DEFAULT_EXPIRY_SECONDS, Destination

from spark_drain_operator.applications.protocol import ApplicationRef
from spark_drain_operator.engine.kind import InvalidSpecError
from spark_drain_operator.kinds.references import check_values, optional_seconds, read_reference, unreadable_spec

__all__ = ["VALUES", "PlacementSpec"]

_DESTINATIONS = {
    "AnyOther": Destination.ANY_OTHER,
    "LastSeen": Destination.LAST_SEEN,
    "ForceRestartLastSeen": Destination.FORCE_RESTART_LAST_SEEN,
}
VALUES: Mapping[str, tuple[str, ...]] = {"destination.type": ("Node", "Selector", *_DESTINATIONS)}
"""Each field with a choice, and the values of this version."""


@dataclass(frozen=True, kw_only=True)
class PlacementSpec:
    """What was asked.

    Parameters
    ----------
    application
        Whose executor it is.
    run_id
        The only run that is meant, or None.
    executor_id, pod_name
        Which executor; one of them is "".
    destination_host, node_selector
        Where it is to run, in the words of `spark_drain_store.placement_messages.PlacementRequest`.
    expiry_seconds, decommission_after, acknowledge_timeout, ttl
        Seconds; ``decommission_after`` None means never, ``ttl`` None keeps the object.
    cancel
        The switch.
    """

    application: ApplicationRef
    run_id: str | None = None
    executor_id: str = ""
    pod_name: str = ""
    destination_host: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    expiry_seconds: int = DEFAULT_EXPIRY_SECONDS
    decommission_after: int | None = None
    acknowledge_timeout: int = 60
    ttl: int | None = None
    cancel: bool = False

    @classmethod
    def parse(cls, spec: Mapping[str, Any]) -> PlacementSpec:
        """Read the ``spec`` of an object that the API server has validated.

        Raises
        ------
        InvalidSpecError
            A field is missing, or has another form, or a value that this version does not know.
        """
        try:
            check_values(spec, VALUES)
            destination = spec["destination"]
            type_ = destination["type"]
            return cls(
                application=read_reference(spec),
                run_id=spec.get("runId"),
                executor_id=spec.get("executorId", ""),
                pod_name=spec.get("podName", ""),
                destination_host=str(_DESTINATIONS[type_]) if type_ in _DESTINATIONS else destination.get("nodeName", ""),
                node_selector=dict(destination.get("nodeSelector") or {}),
                expiry_seconds=int(spec.get("expirationSeconds", DEFAULT_EXPIRY_SECONDS)),
                decommission_after=optional_seconds(spec, "decommissionAfterSeconds"),
                acknowledge_timeout=int(spec.get("acknowledgeTimeoutSeconds", 60)),
                ttl=optional_seconds(spec, "ttlSecondsAfterFinished"),
                cancel=bool(spec.get("cancel", False)),
            )
        except InvalidSpecError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise unreadable_spec(error) from error
