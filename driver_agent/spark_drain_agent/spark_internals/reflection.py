"""Private fields of Spark's objects."""

from __future__ import annotations

from typing import Any

__all__ = ["private_field"]


def private_field(holder: Any, name: str) -> Any:
    """Return the value of a field of an object's class or of one above it, None where there is no such field."""
    of = holder.getClass()
    while of is not None:
        for field in of.getDeclaredFields():
            if str(field.getName()).rsplit("$", 1)[-1] == name:
                field.setAccessible(True)
                return field.get(holder)
        of = of.getSuperclass()
    return None
