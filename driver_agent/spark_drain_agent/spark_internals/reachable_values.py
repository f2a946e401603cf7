"""What a function of the driver refers to: the application's code, and the texts, paths and constants that it may use."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from dis import get_instructions
from enum import Enum
from functools import cached_property, lru_cache, partial, partialmethod, singledispatchmethod
from pathlib import PurePath
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from spark_drain_agent.spark_internals.application_modules import is_own
from spark_drain_agent.spark_internals.run_texts import without_ids

__all__ = ["packages_of", "reachable_values"]

_MOST_VALUES = 10_000
_MOST_ENTRIES = 1_000
"""Of a dictionary, list or set: larger ones are data."""
_TIMES = 10**9
"""Numbers from here on may be times."""
_TEXTS = (str, PurePath)
_WRAPPERS = (cached_property, classmethod, partialmethod, property, singledispatchmethod, staticmethod, type(lru_cache(len)))
_WRAPPED = ("__wrapped__", "__func__", "func", "fget", "fset", "fdel", "dispatcher")
_CODE = (FunctionType, MethodType, partial, *_WRAPPERS)
_CONTAINERS: tuple[Any, ...] = (dict, list, tuple, set, frozenset)
_NAMESPACES = (Namespace, SimpleNamespace)
_GENERATED = frozenset({"__dict__", "__doc__", "__firstlineno__", "__module__", "__static_attributes__", "__weakref__"})
"""Members of classes that Python makes; the ``__doc__`` of a data class has the defaults of its fields, with their addresses."""


@dataclass(frozen=True)
class _Value:
    """A value that is referred to by a name; of a constant numbers count, too, which may be counters elsewhere."""

    name: str
    value: Any
    constant: bool = False


def packages_of(modules: Iterable[str]) -> frozenset[str]:
    """Return the packages of these modules and of the program: they are the application's, also where they are installed."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return frozenset(name.partition(".")[0] for name in [*modules, *([spec.name] if spec is not None else [])])


def reachable_values(function: Any, packages: Collection[str]) -> Iterator[str]:
    """Yield what tells a function apart from others: its code, and that of the application's functions and classes it refers to.

    Nothing is called, and nothing pickled. Of what else it refers to, only texts and paths count, and constants: names in capitals,
    arguments that are bound, and variables of enclosing functions. Connections, counters and caches differ from run to run, and so does
    what a function assigns to variables outside of it.

    Parameters
    ----------
    function
        Anything that can be called.
    packages
        Installed packages that are the application's.
    """
    return _Walk(packages).lines(function)


class _Walk:
    def __init__(self, packages: Collection[str]) -> None:
        self._packages = packages
        self._seen: dict[int, Any] = {}
        """By id; what was looked at lives as long as the walk does, so that no id comes twice."""

    def lines(self, function: Any) -> Iterator[str]:
        """Yield what was found, depth first, and not by recursion: what an application refers to may be nested deeply."""
        open_values: list[Iterator[str | _Value]] = [iter([_Value("", function)])]
        while open_values:
            found = next(open_values[-1], None)
            if found is None:
                open_values.pop()
            elif isinstance(found, str):
                yield found
            elif (text := _text(found)) is not None:
                yield from [text] if text else []
            elif id(found.value) not in self._seen and len(self._seen) < _MOST_VALUES:
                self._seen[id(found.value)] = found.value
                open_values.append(self._parts(found))

    def _parts(self, found: _Value) -> Iterator[str | _Value]:
        value, kind = found.value, type(found.value)
        if kind is FunctionType:
            yield from self._function(value)
        elif kind is MethodType:
            yield _Value("", value.__func__)
            yield _Value("", value.__self__)
        elif issubclass(kind, partial):
            yield _Value("", value.func)
            for name, argument in [*enumerate(value.args), *value.keywords.items()]:
                yield _Value(str(name), argument, constant=True)
        elif issubclass(kind, _WRAPPERS):
            yield from (_Value(name, _attribute(value, name)) for name in _WRAPPED)
        elif issubclass(kind, type):
            yield from self._class(value)
        elif issubclass(kind, _CONTAINERS):
            yield from _entries(found)
        elif issubclass(kind, _NAMESPACES):
            fields = _attribute(value, "__dict__")
            yield from (_Value(name, fields[name]) for name in sorted(fields))
        if self._is_own(kind):
            if issubclass(kind, Enum):
                yield f"{found.name} {kind.__qualname__} {_attribute(value, '_name_')}"
            yield _Value("", kind)
            yield from _fields(value)

    def _function(self, function: FunctionType) -> Iterator[str | _Value]:
        own, assigned = self._is_own(function), {*_assigned(function.__code__)}
        if own:
            yield from _code(function.__code__)
        for default in [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]:
            if own or self._is_code(default):
                yield _Value("DEFAULT", default, constant=True)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            if (own and name not in assigned) or self._is_code(
                value
            ):  # what a library has wrapped may be the application's, the rest is the library's
                yield _Value(name, value, constant=True)
        if "__wrapped__" in vars(function):
            yield _Value("", vars(function)["__wrapped__"])
        if own:
            yield from self._globals([name for name in _names(function.__code__) if name not in assigned], function.__globals__, set())

    def _globals(self, names: list[str], namespace: dict[str, Any], seen: set[int]) -> Iterator[_Value]:
        for name in names:
            value: Any = namespace.get(name)
            if not issubclass(type(value), ModuleType):
                yield _Value(name, value, constant=name.isupper())
            elif id(value) not in seen:
                seen.add(id(value))
                within = _attribute(value, "__dict__")
                if is_own(str(within.get("__name__")), self._packages):
                    yield from self._globals(names, within, seen)

    def _class(self, class_: type) -> Iterator[str | _Value]:
        for each in class_.__mro__:
            if self._is_own(each):
                yield f"class {each.__qualname__}"
                for name, member in vars(each).items():
                    if name not in _GENERATED:
                        yield _Value(name, member, constant=name.isupper())

    def _is_own(self, code: Any) -> bool:
        return type(code.__module__) is str and is_own(code.__module__, self._packages)

    def _is_code(self, value: Any) -> bool:
        return issubclass(type(value), (*_CODE, type)) or self._is_own(type(value))


def _text(found: _Value) -> str | None:
    """Return a value that is text, a number or nothing, as far as it counts, None of another one."""
    value, kind = found.value, type(found.value)
    if issubclass(kind, _TEXTS):
        return f"{found.name} {kind.__name__} {without_ids(str.__str__(value) if issubclass(kind, str) else PurePath.__str__(value))!r}"
    if kind is bytes:
        return f"{found.name} bytes {value.hex()}" if found.constant else ""
    if kind in (bool, int):
        of_a_run = abs(value) >= _TIMES or (kind is int and value == os.getpid())
        return f"{found.name} {value}" if found.constant and not of_a_run else ""
    return "" if value is None or kind in (float, complex) else None


def _entries(found: _Value) -> Iterator[_Value | str]:
    """Yield what a container has, the parts of a set or dictionary in an order that is the same in each run."""
    value = found.value
    of = next(each for each in _CONTAINERS if issubclass(type(value), each))
    if of.__len__(value) > _MOST_ENTRIES:
        return
    if of is dict:
        for key, each in sorted(dict.items(value), key=lambda entry: _plain(entry[0])):
            yield _Value(_plain(key), each, found.constant)
    elif of in (set, frozenset):
        yield f"{found.name} {sorted(_plain(each) for each in of.__iter__(value))}"
    else:
        yield from (_Value(found.name, each, found.constant) for each in of.__iter__(value))


def _plain(value: Any) -> str:
    """Return what tells apart an element of a set, or a key of a dictionary."""
    kind = type(value)
    if kind in (tuple, frozenset):
        parts = [_plain(each) for each in value]
        return str(sorted(parts) if kind is frozenset else parts)
    text = _text(_Value("", value, constant=True))
    if text is None:
        return f"{kind.__name__} {value.__qualname__ if kind is FunctionType or issubclass(kind, type) else ''}"
    return text


def _fields(value: Any) -> Iterator[_Value]:
    """Yield the attributes of an object, those in slots too, without calling anything of its class."""
    for class_ in type(value).__mro__:
        for name, member in vars(class_).items():
            if isinstance(member, MemberDescriptorType):
                try:
                    yield _Value(name, member.__get__(value))
                except AttributeError:  # not assigned yet
                    continue
    fields = _attribute(value, "__dict__") or {}
    yield from (_Value(str(name), fields[name]) for name in sorted(fields, key=str))


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute without asking the object's class, which may raise, or answer everything; None where there is none."""
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return None


def _code(code: CodeType) -> Iterator[str]:
    yield f"{code.co_name} {code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield _constant(constant)


def _constant(value: Any) -> str:
    if isinstance(value, (tuple, frozenset)):
        parts = [_constant(each) for each in value]
        return f"{type(value).__name__} {sorted(parts) if isinstance(value, frozenset) else parts}"
    return without_ids(repr(value))


def _assigned(code: CodeType) -> Iterator[str]:
    """Yield the variables outside of it that a function itself assigns: what they hold is left from the run before."""
    yield from (str(each.argval) for each in get_instructions(code) if each.opname in ("STORE_GLOBAL", "STORE_DEREF"))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _assigned(constant)


def _names(code: CodeType) -> dict[str, None]:
    """Return what code, and the functions within it, call by a name, in its order."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names
