"""Where modules are, and whose they are: found without importing any."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

__all__ = ["installed_places", "is_installed", "is_of_the_application", "is_spark", "is_standard", "spec_of"]

_STANDARD = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
_INSTALLED = ("site-packages", "dist-packages")
_OF_SPARK = frozenset({"cloudpickle", "numpy", "pandas", "py4j", "pyarrow", "pyspark"})


def is_standard(file: str) -> bool:
    """Return whether a file is in the standard library's folder, in which there may be installed packages too."""
    return file.startswith(_STANDARD)


def is_installed(file: str) -> bool:
    """Return whether a file is an installed package's."""
    return not {*_INSTALLED}.isdisjoint(Path(file).parts)


def is_spark(module: str) -> bool:
    """Return whether a module is Spark's, the agent's, or one that Spark is used with."""
    package = module.partition(".")[0]  # in Spark's own images these are not installed, but lie in Spark's folder
    return package in _OF_SPARK or package.startswith("spark_drain")


def is_of_the_application(name: str, spec: ModuleSpec) -> bool:
    """Return whether a module is the application's own, or of a package that was installed for it."""
    origin = spec.origin or ""
    if is_spark(name) or name.partition(".")[0] == "__main__":
        return False
    if not spec.has_location:
        return spec.submodule_search_locations is not None
    return is_installed(origin) or not is_standard(origin)


def spec_of(name: str) -> ModuleSpec | None:
    """Return where a module is, as an import would find it, without importing the packages above it."""
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(loaded, ModuleSpec) or not all(part.isidentifier() for part in name.split(".")):
        return loaded
    path = None
    if above := name.rpartition(".")[0]:
        package = spec_of(above)
        if package is None or package.submodule_search_locations is None:
            return None
        path = package.submodule_search_locations
    for finder in sys.meta_path:
        found = finder.find_spec(name, path)
        if found is not None:
            return found
    return None


def installed_places(spec: ModuleSpec) -> Iterator[Path]:
    """Yield the folder or file of the whole installed package that a module is of; a package without ``__init__.py`` may have several."""
    for file in [spec.origin] if spec.has_location else [*(spec.submodule_search_locations or ())]:
        parts = Path(file or "").parts
        folders = [index for index, part in enumerate(parts[:-1]) if part in _INSTALLED]
        if folders:
            yield Path(*parts[: folders[-1] + 2])
