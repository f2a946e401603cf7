"""The application's own modules, and installed packages, that a function uses: found without importing any."""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path

__all__ = ["is_installed", "is_standard", "sources"]

_STANDARD = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
_INSTALLED = ("site-packages", "dist-packages")
_OF_SPARK = frozenset({"cloudpickle", "numpy", "pandas", "py4j", "pyarrow", "pyspark"})
_IMPORTING = frozenset({"__import__", "import_module"})


def is_standard(file: str) -> bool:
    """Return whether a file is in the standard library's folder, in which there may be installed packages too."""
    return file.startswith(_STANDARD)


def is_installed(file: str) -> bool:
    """Return whether a file is an installed package's."""
    return any(folder in file for folder in _INSTALLED)


def sources(modules: Iterable[str], names: Collection[str]) -> Iterator[str]:
    """Yield name and digest of each of these modules that is the application's, of its packages, and of the modules that it imports.

    Parameters
    ----------
    modules
        Whole names; those that name nothing are passed over.
    names
        What code uses, which may be modules of the packages among them (``from package import module``).
    """
    waiting, seen = [*modules], {""}
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        spec = _spec(name)
        if spec is None or not _is_of_the_application(name, spec):
            continue
        waiting.append(name.rpartition(".")[0])
        origin = spec.origin or ""
        if is_installed(origin):
            yield f"{name} {_installed(origin)}"
            continue
        if spec.submodule_search_locations is not None:
            waiting += [f"{name}.{each}" for each in names]
        if spec.has_location:
            source = _source(name, origin)
            yield f"{name} {hashlib.sha256(source).hexdigest()}"
            waiting += _imported(name if spec.submodule_search_locations is not None else name.rpartition(".")[0], source)


def _spec(name: str) -> ModuleSpec | None:
    """Return where a module is, as an import would find it, without importing the packages above it."""
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(loaded, ModuleSpec) or not all(part.isidentifier() for part in name.split(".")):
        return loaded
    path = None
    if above := name.rpartition(".")[0]:
        package = _spec(above)
        if package is None or package.submodule_search_locations is None:
            return None
        path = package.submodule_search_locations
    for finder in sys.meta_path:
        found = finder.find_spec(name, path)
        if found is not None:
            return found
    return None


def _is_of_the_application(name: str, spec: ModuleSpec) -> bool:
    package, origin = name.partition(".")[0], spec.origin or ""
    if package in _OF_SPARK or package.startswith("spark_drain") or package == "__main__":
        return False
    if not spec.has_location:
        return spec.submodule_search_locations is not None
    return is_installed(origin) or not is_standard(origin)


@cache
def _installed(origin: str) -> str:
    """Return a digest of an installed module, or of all code in the folder of an installed package."""
    file, digest = Path(origin), hashlib.sha256()
    for path in sorted(file.parent.rglob("*.py")) if file.stem == "__init__" else [file]:
        digest.update(f"{path.relative_to(file.parent)}\n".encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


@cache
def _source(name: str, origin: str) -> bytes:
    """Return what a module is made of: as it was when it was first asked for, since a file may change beneath what was loaded from it."""
    spec = _spec(name)
    get_data = getattr(spec.loader if spec is not None else None, "get_data", None)
    try:
        return bytes(get_data(origin)) if get_data is not None else b""
    except OSError:  # it was loaded from a file that is gone
        return b""


def _imported(package: str, source: bytes) -> set[str]:
    """Return the modules that a module may import, by their whole names; a name that is imported from one may be one too."""
    found: set[str] = set()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # compiled code
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(package, f"{'.' * node.level}{node.module or ''}")
            found |= {origin, *(f"{origin}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _IMPORTING:
            named = {each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)}
            found |= {_absolute(package, each) for each in named}
    return found


def _absolute(package: str, name: str) -> str:
    """Return the whole name of a module that a module of a package imports, by dots and a name where it is relative."""
    level = len(name) - len(name.lstrip("."))
    above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
    return ".".join(filter(None, [*above, name.lstrip(".")]))
