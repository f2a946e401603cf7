"""Private fields of Spark's objects, and objects of Scala."""

from __future__ import annotations

import re
from typing import Any

from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]  # py4j ships no types

from spark_drain_agent.spark_internals.errors import UnsupportedSparkError

__all__ = ["companion", "private_field", "set_private_field"]

_NAMES = re.compile(r"\.([^.\s,)]+)(?=[,)])")
"""Of fields in the text of an array of them: ``Array(private final int org.example.Holder.field, ...)``."""


def private_field(holder: Any, name: str) -> Any:
    """Return the value of a field of an object's class or of one above it, None where there is no such field."""
    field = _field(holder, name)
    return None if field is None else field.get(holder)


def set_private_field(holder: Any, name: str, value: Any) -> None:
    """Change a field of an object's class or of one above it.

    Raises
    ------
    UnsupportedSparkError
        There is no such field.
    """
    field = _field(holder, name)
    if field is None:
        raise UnsupportedSparkError(f"{holder.getClass().getSimpleName()} has no field {name}")
    field.set(holder, value)


def _field(holder: Any, name: str) -> Any:
    of = holder.getClass()
    scala = JavaClass("scala.runtime.ScalaRunTime", of._gateway_client)
    while of is not None:
        # Asked for all at once: an array is read one element at a time, and a name that is not there is an exception.
        for field_name in _NAMES.findall(str(scala.stringOf(of.getDeclaredFields()))):
            if field_name.rsplit("$", 1)[-1] == name:
                field = of.getDeclaredField(field_name)
                field.setAccessible(True)
                return field
        of = of.getSuperclass()
    return None


def companion(jvm: Any, name: str) -> Any:
    """Return the Scala object of this name, such as the companion of a class."""
    return jvm.java.lang.Class.forName(f"{name}$").getField("MODULE$").get(None)
