"""What the text of a module says about what it needs."""

from __future__ import annotations

import ast
import threading
from dataclasses import dataclass
from functools import cache

__all__ = ["SourceCode", "source_code"]

_IMPORTING = frozenset({"__import__", "import_module"})
_TRIES = 20
_parsing = threading.RLock()
"""A finalizer may call back into Python in the middle of it."""


@dataclass(frozen=True)
class SourceCode:
    """What a module needs.

    Parameters
    ----------
    imported
        Modules that it may import, by their whole names; a name that is imported from one may be one too.
    texts
        Its constants that are texts, among them names of environment variables.
    """

    imported: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()


@cache
def source_code(package: str, source: bytes) -> SourceCode:
    """Read the source of a module of a package ("" where it is in none)."""
    try:
        tree = _parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # compiled code, or nested too deeply for Python's parser
        return SourceCode()
    imported: set[str] = set()
    texts: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(package, f"{'.' * node.level}{node.module or ''}")
            imported |= {origin, *(f"{origin}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _IMPORTING:
            named = {each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)}
            imported |= {_absolute(package, each) for each in named}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
    return SourceCode(frozenset(imported), frozenset(texts))


def _parsed(source: bytes) -> ast.Module:
    """Parse a text in one thread at a time, and again where the application parses one just then.

    Python 3.11 counts the depth of a tree in one place for all threads, and raises a `SystemError` where that does not add up.
    """
    with _parsing:
        for _ in range(_TRIES):
            try:
                return ast.parse(source)
            except SystemError:
                continue
        return ast.parse(source)


def _absolute(package: str, name: str) -> str:
    """Return the whole name of a module that a module of a package imports, by dots and a name where it is relative."""
    level = len(name) - len(name.lstrip("."))
    above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
    return ".".join(filter(None, [*above, name.lstrip(".")]))
