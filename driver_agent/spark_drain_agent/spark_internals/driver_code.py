"""The Python code that a sink runs on the driver, as a digest that is equal for equal code of two runs."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from spark_drain_agent.spark_internals.program import program_text
from spark_drain_agent.spark_internals.reachable_values import packages_of, reachable_values

__all__ = ["batch_function_digest"]

_known: dict[tuple[int, int], tuple[weakref.ref[Any], str]] = {}
"""By the ids of a function and of the object whose method it is."""


def batch_function_digest(function: Any) -> str:
    """Return a digest of a function as it was when it was first asked for: what it refers to changes while it runs.

    It counts which program runs, and what code, texts and paths the function refers to. UUIDs in texts do not count.
    """
    owner, called = (function.__self__, function.__func__) if type(function) is MethodType else (function, function)
    key = (id(owner), id(called))
    if key not in _known:
        digest = _digest(function)
        try:
            _known[key] = (weakref.ref(owner, lambda _: _known.pop(key, None)), digest)
        except TypeError:  # of a class with slots
            return digest
    return _known[key][1]


def _digest(function: Any) -> str:
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
