"""``spec.applicationRef``, which every kind has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spark_drain_operator.applications.protocol import ApplicationRef
from spark_drain_operator.engine.kind import InvalidSpecError

__all__ = ["read_reference", "unreadable_spec"]

_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LONGEST, _LONGEST_LABEL = 220, 63
"""Pods are found by a label with the name of their SparkApplication, and labels have at most 63 characters."""
_SHOWN = 80


def read_reference(spec: Mapping[str, Any]) -> ApplicationRef:
    """Return the application that a spec refers to; the definition in the cluster may be older than this operator, and let others through.

    Raises
    ------
    InvalidSpecError
        The name cannot be one.
    """
    ref = spec["applicationRef"]
    kind, name = ref["kind"], ref["name"]
    longest = _LONGEST if kind == "Pod" else _LONGEST_LABEL
    if not re.fullmatch(_NAME, name) or len(name) > longest:
        raise InvalidSpecError(
            f"spec.applicationRef.name {name[:_SHOWN]!r} cannot be the name of a {kind}: it must be at most {longest} lower case letters, "
            "digits, '-' and '.', beginning and ending with a letter or digit"
        )
    return ApplicationRef(ref["apiVersion"], kind, name)


def unreadable_spec(error: Exception) -> InvalidSpecError:
    """Return what is said of a spec that has another form than the schema of this version wants."""
    return InvalidSpecError(
        f"spec cannot be read ({type(error).__name__}: {error}); apply the CustomResourceDefinition of this operator's version"
    )
