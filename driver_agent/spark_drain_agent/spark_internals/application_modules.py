"""The application's own modules, and installed packages, that a function uses: found without importing any."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

from spark_drain_agent.spark_internals.environment import surroundings
from spark_drain_agent.spark_internals.installed_packages import counted
from spark_drain_agent.spark_internals.module_places import (
    installed_places,
    is_installed,
    is_of_the_application,
    is_spark,
    is_standard,
    spec_of,
)
from spark_drain_agent.spark_internals.source_code import source_code

__all__ = ["is_own", "sources"]


def sources(modules: Iterable[str], names: Collection[str]) -> Iterator[str]:
    """Yield name and digest of each of these modules that is the application's, of its packages, and of the modules that it imports.

    What these name of environment variables and configuration files is yielded, too.

    Parameters
    ----------
    modules
        Whole names; those that name nothing are passed over.
    names
        What code uses, which may be modules of the packages among them (``from package import module``).
    """
    waiting, seen = [*modules], {""}
    installed: set[Path] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        spec = spec_of(name)
        if spec is None or not is_of_the_application(name, spec):
            continue
        if places := [*installed_places(spec)]:
            installed |= {*places}
            continue
        waiting.append(name.rpartition(".")[0])
        origin = spec.origin or ""
        if spec.submodule_search_locations is not None:
            waiting += [f"{name}.{each}" for each in names]
        if spec.has_location:
            source = _source(name, origin)
            yield f"{name} {hashlib.sha256(source).hexdigest()}"
            code = source_code(name if spec.submodule_search_locations is not None else name.rpartition(".")[0], source)
            yield from surroundings(code.texts, origin)
            waiting += code.imported
    yield from counted(installed)


def is_own(module: str, packages: Collection[str]) -> bool:
    """Return whether a module that was imported is the application's: not installed, or of one of these installed packages."""
    if module == "__main__":
        return True
    file = str(getattr(sys.modules.get(module), "__file__", None) or "")
    if not file or is_spark(module):
        return False
    return module.partition(".")[0] in packages if is_installed(file) else not is_standard(file)


@cache
def _source(name: str, origin: str) -> bytes:
    """Return what a module is made of: as it was when it was first asked for, since a file may change beneath what was loaded from it."""
    spec = spec_of(name)
    get_data = getattr(spec.loader if spec is not None else None, "get_data", None)
    try:
        return bytes(get_data(origin)) if get_data is not None else b""
    except OSError:  # it was loaded from a file that is gone
        return b""
