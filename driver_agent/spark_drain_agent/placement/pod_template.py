"""Where the next executor pod may run, as a change of its template (pure)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from spark_drain_store.placement_messages import Destination, PlacementRequest

__all__ = ["bound_template", "conflict"]


def bound_template(template: Mapping[str, Any], request: PlacementRequest, source_node: str, annotation: str) -> dict[str, Any]:
    """Return a pod template whose pods run where a request wants one.

    Parameters
    ----------
    template
        The application's own, a Pod; what it demands stays.
    request
        The placement.
    source_node
        The present node of the executor.
    annotation
        Name of the annotation that gets the placement's id.
    """
    pod = copy.deepcopy(dict(template))
    metadata, spec = pod.setdefault("metadata", {}), pod.setdefault("spec", {})
    metadata.setdefault("annotations", {})[annotation] = request.placement_id
    if request.node_selector:
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **request.node_selector}
    rule = _node_rule(request.destination_host, source_node)
    if rule is not None:
        required = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
        # Terms are alternatives: each of them has to have the rule.
        terms = required.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {}).setdefault("nodeSelectorTerms", []) or [{}]
        for term in terms:
            term["matchFields"] = [*(term.get("matchFields") or []), rule]
        required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = terms
    return pod


def _node_rule(destination: str, source_node: str) -> dict[str, Any] | None:
    if not destination:
        return None
    operator = "NotIn" if destination == Destination.ANY_OTHER else "In"
    node = source_node if destination in tuple(Destination) else destination
    return {"key": "metadata.name", "operator": operator, "values": [node]}


def conflict(request: PlacementRequest, template: Mapping[str, Any], conf_selector: Mapping[str, str]) -> str:
    """Return which label the application itself wants to be another than the request does, or ""."""
    own = {**((template.get("spec") or {}).get("nodeSelector") or {}), **conf_selector}
    for name, value in request.node_selector.items():
        if own.get(name, value) != value:
            return f"the application's own executors need nodes with {name}={own[name]}, the request {name}={value}"
    return ""
