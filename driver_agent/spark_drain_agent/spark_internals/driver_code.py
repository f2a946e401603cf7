"""The Python code that a sink runs on the driver, as a digest that is equal for equal code of two runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from spark_drain_agent.spark_internals.program import program_text
from spark_drain_agent.spark_internals.reachable_values import packages_of, reachable_values

__all__ = ["batch_function_digest"]


def batch_function_digest(function: Any) -> str:
    """Return a digest of a function as it is now, when its query starts: what it refers to may change while it runs.

    It counts which program runs, and what code, texts and paths the function refers to. UUIDs in texts do not count.
    """
    modules = {*_modules(function)}
    text = "\n".join([program_text(modules), *reachable_values(function, packages_of(modules))])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _modules(function: Any) -> Iterator[str]:
    """Yield where a function comes from, and the class of the object whose method it is."""
    while type(function) is partial:
        function = function.func
    if type(function) is MethodType:
        yield from _modules(type(function.__self__))
        function = function.__func__
    part = function if type(function) is FunctionType or issubclass(type(function), type) else type(function)
    if type(part.__module__) is str:
        yield part.__module__
