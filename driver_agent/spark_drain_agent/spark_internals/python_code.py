"""The code of Python functions in a plan, as a digest that is equal for equal code of two runs."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Generator, Iterable, Iterator
from dis import opmap
from typing import Any

from spark_drain_agent.spark_internals.application_modules import sources
from spark_drain_agent.spark_internals.configuration_files import LONGEST_NAME
from spark_drain_agent.spark_internals.environment import surroundings
from spark_drain_agent.spark_internals.pickle_tree import Node, pickle_tree
from spark_drain_agent.spark_internals.run_texts import without_addresses

__all__ = ["broadcast_id", "code_digest"]

_MOST_OPCODES = 500_000
"""Of a pickle that is looked into: a few seconds."""
_BROADCAST_OPCODES = 20
"""Of the pickle of a broadcast variable, at most."""
_SETS = frozenset({"ADDITEMS", "FROZENSET"})
_ITEMS = frozenset({"SETITEM", "SETITEMS"})
_CODE = "CodeType"
_CONSTANTS, _NAMES, _BYTECODE, _FILE_NAME = 7, 8, 6, 10
"""Arguments of `types.CodeType`."""
_BROADCAST = "_from_id"
_OF_ONE_RUN = {
    _CODE: _FILE_NAME,
    _BROADCAST: 0,
    "_deserialize_accumulator": 0,
    "_make_skeleton_class": 4,
    "_make_skeleton_enum": 5,
    "_make_typevar": 5,
}
"""The argument in which a function of pickles carries an id, or a path, of one run."""
_UNCOUNTED = frozenset({"__doc__", "__file__", "__firstlineno__", "__path__", "__static_attributes__"})
"""What a folder or a line of the program is called in classes and modules, and texts that data classes make of their defaults."""
_OF_A_MODULE = frozenset({"__module__", "__name__"})
_IMPORTING = frozenset({"__import__", "import_module"})
_PICKLING = frozenset({"cloudpickle", "pyspark"})


def broadcast_id(pickled: bytes) -> int | None:
    """Return the id of the broadcast variable in whose place a pickle stands, as that of a large function does, else None."""
    tree = pickle_tree(pickled, _BROADCAST_OPCODES)
    return int(tree.parts[1].parts[0].argument) if tree is not None and _called(tree) == _BROADCAST else None


def code_digest(pickled: bytes) -> str:
    """Return a digest of a pickled function, and of the application's modules, variables and files that it uses.

    What differs from run to run does not count: the order of a set or dictionary, the id that cloudpickle gives to each class of the
    program's own file, the ids of broadcast variables and accumulators, the folder of the program. A pickle of very many objects is not
    looked into.
    """
    tree = pickle_tree(pickled, _MOST_OPCODES)
    if tree is None:
        return "large"
    digests = _Digests()
    function = digests.of(tree)
    used = {*sources(digests.modules, digests.names), *surroundings(digests.texts, digests.script)}
    return hashlib.sha256("\n".join([function, *sorted(used)]).encode()).hexdigest()[:16]


_Steps = Generator[Node, str, str]
"""Asks for the digests of the parts of an object, one by one, and returns its text."""


class _Digests:
    """Digests of objects: equal for equal ones, whether or not a pickle has one of them in several places.

    The modules that they come from or import are noted on the way, the names that code uses, which may be modules of a package, and texts,
    which may be names of variables and files.
    """

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.names: set[str] = set()
        self.texts: set[str] = set()
        main = sys.modules.get("__main__")
        self.script, self._package = str(getattr(main, "__file__", None) or ""), getattr(main, "__package__", None)
        self._known: dict[int, str] = {}

    def of(self, root: Node) -> str:
        """Return the digest of an object; what it refers to may be nested deeply, so that nothing here calls itself."""
        path = {id(root): (0, self._text(root))}
        digest: Any = None
        while path:
            node, (_, steps) = next(reversed(path.items()))
            try:
                part = steps.send(digest)
            except StopIteration as end:
                del path[node]
                digest = self._known[node] = hashlib.sha256(end.value.encode("utf-8", "surrogatepass")).hexdigest()[:32]
                continue
            if id(part) in path:  # a function that calls itself
                digest = f"{len(path) - path[id(part)][0]} up"
            elif id(part) in self._known:
                digest = self._known[id(part)]
            else:
                path[id(part)] = (len(path), self._text(part))
                digest = None
        return str(digest)

    def _text(self, node: Node) -> _Steps:
        called = _called(node)
        self.modules.add(node.imported[0])
        if called == "subimport":
            self.modules.add(str(node.parts[1].parts[0].argument))
        elif called == _CODE:
            self._note_imports(*(node.parts[1].parts[index] for index in (_BYTECODE, _CONSTANTS, _NAMES)))
        counted = node.parts
        if called in _OF_ONE_RUN:
            arguments = node.parts[1].parts
            counted = [node.parts[0], *(part for index, part in enumerate(arguments) if index != _OF_ONE_RUN[called])]
        parts = yield from _digests(counted)
        if node.name in _SETS:
            parts.sort()
        elements, items, changes = [], [], []
        for change in node.changes:
            if change.name in _SETS:
                elements += yield from _digests(change.parts)
            elif change.name in _ITEMS:
                items += yield from self._items(change)
            else:
                changes.append((change.name, (yield from _digests(change.parts))))
        return f"{node.name} {self._leaf(node.argument)} {parts} {sorted(elements)} {sorted(items)} {changes}"

    def _items(self, change: Node) -> Generator[Node, str, list[tuple[str, str]]]:
        items = []
        for key, value in zip(change.parts[::2], change.parts[1::2], strict=True):
            if key.argument in _OF_A_MODULE:
                self.modules.add(str(value.argument))
            items.append(((yield key), "" if key.argument in _UNCOUNTED else (yield value)))
        return items

    def _leaf(self, argument: Any) -> str:
        if not isinstance(argument, str):
            return repr(argument)
        if argument == self.script != "":
            return "the script"
        if len(argument) <= LONGEST_NAME:
            self.texts.add(argument)
        return repr(without_addresses(argument))

    def _note_imports(self, bytecode: Node, constants: Node, names: Node) -> None:
        used = [str(name.argument) for name in names.parts]
        imported = {*_imported(bytecode.argument, used)}
        if not _IMPORTING.isdisjoint(used):
            imported |= {constant.argument for constant in constants.parts if isinstance(constant.argument, str)}
        self.names |= {*used}
        self.modules |= imported
        if self._package:
            self.modules |= {f"{self._package}.{name}".rstrip(".") for name in imported}


def _digests(nodes: Iterable[Node]) -> Generator[Node, str, list[str]]:
    digests = []
    for node in nodes:
        digests.append((yield node))
    return digests


def _called(node: Node) -> str:
    """Return the function of cloudpickle's or PySpark's own that a pickle calls here, or the built-in type that it makes, or ""."""
    if node.name != "REDUCE":
        return ""
    function, arguments = node.parts
    if _called(function) == "_builtin_type":
        return str(function.parts[1].parts[0].argument)
    module, name = function.imported
    return name if arguments.parts and module.partition(".")[0] in _PICKLING else ""


def _imported(bytecode: bytes, names: list[str]) -> Iterator[str]:
    """Yield what the import statements of a function name."""
    high = 0
    for opcode, low in zip(bytecode[::2], bytecode[1::2], strict=True):
        argument = high | low
        high = argument << 8 if opcode == opmap["EXTENDED_ARG"] else 0
        if opcode == opmap["IMPORT_NAME"] and argument < len(names):
            yield names[argument]
