"""``spec.applicationRef``, which every kind has, and what is said of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from spark_drain_operator.applications import find_adapter
from spark_drain_operator.applications.protocol import ApplicationAdapter, ApplicationRef
from spark_drain_operator.engine.kind import InvalidSpecError

__all__ = [
    "APPLICATION_NOT_FOUND",
    "APPLICATION_UNREADABLE",
    "CONFIG_MAPS_OF_ANOTHER",
    "check_values",
    "is_name",
    "optional_seconds",
    "read_reference",
    "unreadable_spec",
    "unsupported",
]

# Messages of reasons that every kind has.
APPLICATION_NOT_FOUND: Final = "there is no {kind} {name!r} in namespace {namespace!r}: check spec.applicationRef and the namespace"
APPLICATION_UNREADABLE: Final = "{kind} {name!r} cannot be read ({error}); the {what} goes on when it can"
CONFIG_MAPS_OF_ANOTHER: Final = (
    "ConfigMaps {names} belong to an earlier application of the name {name!r} and are about to be removed by the garbage collector"
)
_UNSUPPORTED = (
    "applicationRef {api_version}/{kind} is not supported yet; supported: {supported}. Request a {what} from the agent "
    "directly: python -m spark_drain_store --metadata-store configmap:NAMESPACE/{name} {what} write"
)

_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LONGEST_NAME, _LONGEST, _LONGEST_LABEL = 253, 220, 63
"""Pods are found by a label with the name of their SparkApplication, and labels have at most 63 characters."""
_SHOWN = 80


def is_name(text: str) -> bool:
    """Return whether an object can have such a name."""
    return len(text) <= _LONGEST_NAME and re.fullmatch(_NAME, text) is not None


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


def optional_seconds(spec: Mapping[str, Any], name: str) -> int | None:
    """Return a field in seconds that may be absent."""
    return None if spec.get(name) is None else int(spec[name])


def check_values(spec: Mapping[str, Any], known: Mapping[str, Sequence[str]]) -> None:
    """See that a spec has only values that this operator knows; the definition in the cluster may be newer.

    Parameters
    ----------
    spec
        Of an object.
    known
        Field, with a dot where the spec nests, to its values; a field that is left out has its default.

    Raises
    ------
    InvalidSpecError
        It has another one: whatever it asks for is not what a default would do.
    """
    for field, values in known.items():
        value: Any = spec
        for part in field.split("."):
            value = None if value is None else value.get(part)
        if value is not None and value not in values:
            raise InvalidSpecError(
                f"spec.{field} {value!r} is not known to this operator, which is older than the CustomResourceDefinition; it knows "
                f"{', '.join(values)}"
            )


def unreadable_spec(error: Exception) -> InvalidSpecError:
    """Return what is said of a spec that has another form than the schema of this version wants."""
    return InvalidSpecError(
        f"spec cannot be read ({type(error).__name__}: {error}); apply the CustomResourceDefinition of this operator's version"
    )


def unsupported(known: Sequence[ApplicationAdapter], ref: ApplicationRef, what: str) -> str:
    """Return why nothing can be done for an application of that kind, or "".

    Parameters
    ----------
    known
        The adapters of this version.
    ref
        The application.
    what
        What was asked for, as the command is called that asks the agent itself.
    """
    if find_adapter(known, ref) is not None:
        return ""
    supported = ", ".join(f"{adapter.api_version}/{adapter.kind}" for adapter in known)
    return _UNSUPPORTED.format(api_version=ref.api_version, kind=ref.kind, supported=supported, name=ref.name, what=what)
