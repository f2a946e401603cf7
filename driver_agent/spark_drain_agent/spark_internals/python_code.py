"""The code of Python functions in a plan, as a digest that is equal for equal code of two runs."""

from __future__ import annotations

import ast
import hashlib
import pickletools
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

__all__ = ["code_digest"]

_SKIPPED = frozenset({"FRAME", "PROTO"})
_PUT = frozenset({"BINPUT", "LONG_BINPUT", "PUT"})
_GET = frozenset({"BINGET", "GET", "LONG_BINGET"})
_CHANGES = frozenset({"ADDITEMS", "APPEND", "APPENDS", "BUILD", "SETITEM", "SETITEMS"})
"""Opcodes whose first operand stays the same object."""
_SETS = frozenset({"ADDITEMS", "FROZENSET"})
_BROADCAST = b"pyspark.core.broadcast\x94\x8c\x08_from_id"
_WITH_AN_ID = (b"_make_skeleton_class", b"_make_skeleton_enum", b"_make_typevar")
_CLASS_ID = re.compile("[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}")
"""``uuid.uuid4().hex``."""
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""In the name of a folder to which Spark has fetched the application."""
_STANDARD = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
_OF_SPARK = frozenset({"cloudpickle", "numpy", "pandas", "py4j", "pyarrow", "pyspark"})


def code_digest(pickled: bytes) -> str:
    """Return a digest of a pickled function, and of the modules of the application that it is imported from.

    What differs from run to run does not count: the order of a set, and the id that cloudpickle gives to each class of the program's own
    file. A function so large that Spark broadcasts it is not looked into.
    """
    if _BROADCAST in pickled:
        return "broadcast"
    digests = _Digests(with_ids=any(name in pickled for name in _WITH_AN_ID))
    function = digests.of(_tree(pickled))
    return hashlib.sha256("\n".join([function, *sorted(_sources(digests.modules))]).encode()).hexdigest()[:16]


@dataclass(eq=False)
class _Node:
    """What an opcode of a pickle makes: of its argument, of what it takes from the stack, and of what later ones do to it."""

    name: str
    argument: Any
    parts: list[_Node] = field(default_factory=list)
    changes: list[_Node] = field(default_factory=list)


def _tree(pickled: bytes) -> _Node:
    """Return what a pickle describes, without making it."""
    stack: list[_Node] = []
    memo: dict[int, _Node] = {}
    for operation, argument, _ in pickletools.genops(pickled):
        name, before = operation.name, operation.stack_before
        if name in _SKIPPED:
            continue
        if name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in _PUT:
            memo[int(str(argument))] = stack[-1]
        elif name in _GET:
            stack.append(memo[int(str(argument))])
        elif name == "POP":  # what set the state of the object beneath, as cloudpickle does it
            made = stack.pop()
            stack[-1].changes.append(made)
        elif name == "STOP":
            break
        else:
            operands: list[_Node] = []
            if pickletools.markobject in before:
                mark = max(index for index, node in enumerate(stack) if node.name == "MARK")
                operands, stack[mark:] = stack[mark + 1 :], []
                before = before[: before.index(pickletools.markobject)]
            if before:
                operands, stack[-len(before) :] = [*stack[-len(before) :], *operands], []
            if name in _CHANGES:
                operands[0].changes.append(_Node(name, argument, operands[1:]))
                stack.append(operands[0])
            else:
                stack.extend(_Node(name, argument, operands) for _ in operation.stack_after)
    return stack[-1]


class _Digests:
    """Digests of objects: equal for equal ones, whether or not a pickle has one of them in several places."""

    def __init__(self, *, with_ids: bool) -> None:
        self.modules: set[str] = set()
        self._with_ids = with_ids
        self._script = getattr(sys.modules.get("__main__"), "__file__", None)
        self._known: dict[int, str] = {}
        self._path: list[int] = []

    def of(self, node: _Node) -> str:
        """Return the digest of an object."""
        if id(node) in self._path:  # a function that calls itself
            return f"{len(self._path) - self._path.index(id(node))} up"
        if id(node) not in self._known:
            self._path.append(id(node))
            self._known[id(node)] = hashlib.sha256(self._text(node).encode()).hexdigest()[:32]
            self._path.pop()
        return self._known[id(node)]

    def _text(self, node: _Node) -> str:
        self._note_module(node)
        parts = [self.of(part) for part in node.parts]
        if node.name in _SETS:
            parts.sort()
        elements = sorted(self.of(part) for change in node.changes if change.name in _SETS for part in change.parts)
        changes = [(change.name, [self.of(part) for part in change.parts]) for change in node.changes if change.name not in _SETS]
        return f"{node.name} {self._leaf(node.argument)} {parts} {elements} {changes}"

    def _leaf(self, argument: Any) -> str:
        if isinstance(argument, str):
            if argument == self._script:
                return "the script"
            if self._with_ids and _CLASS_ID.fullmatch(argument):
                return "a class"
            argument = _UUID.sub("", argument)
        return repr(argument)

    def _note_module(self, node: _Node) -> None:
        if node.name == "GLOBAL":
            self.modules.add(str(node.argument).partition(" ")[0])
        elif node.name == "STACK_GLOBAL" and isinstance(node.parts[0].argument, str):
            self.modules.add(node.parts[0].argument)


def _sources(names: set[str]) -> Iterator[str]:
    """Yield name and digest of the modules that are the application's, and of those that they use."""
    waiting, seen = [*names], set(names)
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        if module is None or not _is_of_the_application(module):
            continue
        source = _source(module)
        yield f"{name} {hashlib.sha256(source.encode()).hexdigest()}"
        used = {each for each in _imported(module, source) if each not in seen and _is_followed(name, each)}
        seen |= used
        waiting += used


def _source(module: ModuleType) -> str:
    get_source = getattr(getattr(module.__spec__, "loader", None), "get_source", None)
    try:
        return (get_source(module.__name__) or "") if get_source is not None else ""
    except (ImportError, OSError):  # it was loaded from a file that is gone
        return ""


def _imported(module: ModuleType, source: str) -> set[str]:
    """Return the modules that a module imports, by their whole names; a name that is imported from one may be one too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = (module.__package__ or "").split(".")
            above = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            origin = ".".join(filter(None, [above, node.module]))
            found |= {origin, *(f"{origin}.{alias.name}" for alias in node.names)}
    return found & sys.modules.keys()


def _is_followed(name: str, used: str) -> bool:
    """Whether a module's use of another one may matter: installed packages are followed within themselves."""
    return _package(used) == _package(name) or not _is_installed(sys.modules.get(used))


def _package(name: str) -> str:
    return name.partition(".")[0]


def _is_installed(module: ModuleType | None) -> bool:
    return any(folder in str(getattr(module, "__file__", "")) for folder in ("site-packages", "dist-packages"))


def _is_of_the_application(module: ModuleType) -> bool:
    file, package = getattr(module, "__file__", None), _package(module.__name__)
    if not file or package in _OF_SPARK or package.startswith("spark_drain") or package == "__main__":
        return False
    return _is_installed(module) or not file.startswith(_STANDARD)
