"""The Python functions of a logical plan."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_drain_agent.spark_internals.python_code import broadcast_id, code_digest

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["function_digest"]


def function_digest(internals: SparkInternals, function: Any) -> str:
    """Return the digest of a function's code, of one so large that Spark broadcasts it too, unless Spark encrypts its files."""
    command = bytes(function.command().toArray(internals.jvm.scala.reflect.ClassTag.Byte()))
    broadcast = broadcast_id(command)
    if broadcast is None:
        return code_digest(command)
    return "encrypted" if internals.context._encryption_enabled else code_digest(_broadcast_command(function, broadcast))


def _broadcast_command(function: Any, broadcast: int) -> bytes:
    """Return the pickled function that a broadcast variable carries, from the file that the driver keeps of it."""
    path = next(str(variable.value().path()) for variable in function.broadcastVars() if int(variable.id()) == broadcast)
    return bytes(pickle.loads(Path(path).read_bytes()))
