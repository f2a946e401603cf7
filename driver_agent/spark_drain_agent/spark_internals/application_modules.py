"""The application's own modules, and installed packages, that a function uses: found without importing any."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path

from spark_drain_agent.spark_internals.environment import surroundings
from spark_drain_agent.spark_internals.source_code import source_code

__all__ = ["is_own", "sources"]

_STANDARD = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
_INSTALLED = ("site-packages", "dist-packages")
_OF_SPARK = frozenset({"cloudpickle", "numpy", "pandas", "py4j", "pyarrow", "pyspark"})


def _is_standard(file: str) -> bool:
    """Return whether a file is in the standard library's folder, in which there may be installed packages too."""
    return file.startswith(_STANDARD)


def _is_installed(file: str) -> bool:
    """Return whether a file is an installed package's."""
    return any(folder in file for folder in _INSTALLED)


def sources(modules: Iterable[str], names: Collection[str]) -> Iterator[str]:
    """Yield name and digest of each of these modules that is the application's, of its packages, and of the modules that it imports.

    What the application's own modules name of environment variables and configuration files is yielded, too.

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
        if _is_installed(origin):
            yield f"{name} {_installed(origin)}"
            continue
        if spec.submodule_search_locations is not None:
            waiting += [f"{name}.{each}" for each in names]
        if spec.has_location:
            source = _source(name, origin)
            yield f"{name} {hashlib.sha256(source).hexdigest()}"
            code = source_code(name if spec.submodule_search_locations is not None else name.rpartition(".")[0], source)
            yield from surroundings(code.texts, origin)
            waiting += code.imported


def is_own(module: str, packages: Collection[str]) -> bool:
    """Return whether a module that was imported is the application's: not installed, or of one of these installed packages."""
    if module == "__main__":
        return True
    file = str(getattr(sys.modules.get(module), "__file__", None) or "")
    if not file or _is_spark(module):
        return False
    return module.partition(".")[0] in packages if _is_installed(file) else not _is_standard(file)


def _is_spark(module: str) -> bool:
    package = module.partition(".")[0]  # in Spark's own images these are not installed, but lie in Spark's folder
    return package in _OF_SPARK or package.startswith("spark_drain")


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
    origin = spec.origin or ""
    if _is_spark(name) or name.partition(".")[0] == "__main__":
        return False
    if not spec.has_location:
        return spec.submodule_search_locations is not None
    return _is_installed(origin) or not _is_standard(origin)


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
