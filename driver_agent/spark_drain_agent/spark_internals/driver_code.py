"""The Python code that a sink runs on the driver, as a digest that is equal for equal code of two runs."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import partial
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType
from typing import Any

from spark_drain_agent.spark_internals.application_modules import is_installed, is_standard

__all__ = ["batch_function_digest"]

_UUID = re.compile("[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_TEXTS = (str, PurePath)
_CONSTANTS = (*_TEXTS, bytes, int, Enum, tuple, frozenset)
_DEEPEST = 12


def batch_function_digest(function: Any) -> str:
    """Return a digest of a function: its code, that of the application's functions and classes it refers to, and where it may write to.

    Nothing is called, and nothing pickled. Of what else it refers to, only texts and paths count, and constants (names in capitals):
    connections, counters and caches differ from run to run. UUIDs in texts do not count.
    """
    return hashlib.sha256("\n".join(_Walk().of(function)).encode()).hexdigest()[:16]


class _Walk:
    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}
        """By id; what was looked at lives as long as the walk does, so that no id comes twice."""
        self._depth = 0

    def of(self, value: Any, name: str = "") -> Iterator[str]:
        """Yield what tells a value apart, which is referred to by a name."""
        if isinstance(value, _CONSTANTS) and (name.isupper() or isinstance(value, _TEXTS)):
            yield f"{name} {type(value).__name__} {_constant(value)}"
        elif id(value) not in self._seen and self._depth < _DEEPEST:
            self._seen[id(value)] = value
            self._depth += 1
            yield from self._parts(value)
            self._depth -= 1

    def _parts(self, value: Any) -> Iterator[str]:
        if isinstance(value, FunctionType):
            yield from self._function(value)
        elif isinstance(value, MethodType):
            yield from self.of(value.__func__)
            yield from self.of(value.__self__)
        elif isinstance(value, partial):
            yield from self.of(value.func)
            for name, argument in [*enumerate(value.args), *value.keywords.items()]:
                yield from self.of(argument, str(name))
        elif isinstance(value, type):
            yield from self._class(value)
        elif _is_own(type(value).__module__):
            yield from self.of(type(value))
            for name, field in getattr(value, "__dict__", {}).items():
                yield from self.of(field, name)

    def _function(self, function: FunctionType) -> Iterator[str]:
        if not _is_own(function.__module__):
            return
        yield from _code(function.__code__)
        for default in [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]:
            yield from self.of(default, "DEFAULT")
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                yield from self.of(cell.cell_contents, name)
            except ValueError:  # not assigned yet
                continue
        for name, value in _referred_to(function.__code__, function.__globals__):
            yield from self.of(value, name)

    def _class(self, class_: type) -> Iterator[str]:
        if _is_own(class_.__module__):
            yield f"class {class_.__qualname__}"
            for name, member in vars(class_).items():
                yield from self.of(getattr(member, "__func__", member), name)


def _constant(value: Any) -> str:
    if isinstance(value, frozenset):
        return str(sorted(map(_constant, value)))
    return _UUID.sub("", repr(value) if not isinstance(value, PurePath) else str(value))


def _code(code: CodeType) -> Iterator[str]:
    yield f"{code.co_name} {code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield _constant(constant)


def _referred_to(code: CodeType, names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in code.co_names:
        if name in names:
            yield name, names[name]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _referred_to(constant, names)


def _is_own(module: str) -> bool:
    file = str(getattr(sys.modules.get(module), "__file__", None) or "")
    return module == "__main__" or (bool(file) and not is_standard(file) and not is_installed(file))
