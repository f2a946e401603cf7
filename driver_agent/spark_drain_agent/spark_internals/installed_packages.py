"""Installed packages that an application uses: whole, with those that they import."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from spark_drain_agent.spark_internals.configuration_files import is_configuration
from spark_drain_agent.spark_internals.environment import surroundings
from spark_drain_agent.spark_internals.module_places import installed_places, is_of_the_application

__all__ = ["counted", "forget"]

_MOST_BYTES = 2_000_000
"""That are read for one function: about 0.1 s, once in a process."""
_OF_A_FILE = 1_000
"""Bytes that are read in the time in which a file is opened."""
_TEXT = re.compile(rb"""(["'])([\w./~-]{1,200})\1""")
_IMPORTED = re.compile(
    rb"""^[ \t]*from[ \t]+(\w+)[\w.]*[ \t]+import\b|^[ \t]*import[ \t]+([^\n#;]+)|(?:import_module|__import__)\(\s*["'](\w+)""",
    re.MULTILINE,
)


@dataclass(frozen=True)
class _Names:
    """What the sources of a package name: texts, and packages and modules that they import."""

    texts: frozenset[str]
    imported: frozenset[str]


def counted(places: Iterable[Path]) -> Iterator[str]:
    """Yield name and digest of installed packages and of those that they import, with the variables and files that their sources name.

    The nearest ones, and small ones before large ones, are read up to `_MOST_BYTES`. The others count as they were installed, by
    their lines of ``RECORD``, and what they import is not followed.

    Parameters
    ----------
    places
        Folders, or files of modules that are in no package.
    """
    left = _MOST_BYTES
    seen: set[Path] = set()
    level = {*places}
    while level:
        seen |= level
        imported: set[str] = set()
        for size, place in sorted((_size(place), place) for place in level):
            if size > left:
                yield f"{place.stem} {_recorded(place)}"
                continue
            left -= size
            names = _names(place)
            yield f"{place.stem} {_digest(place)}"
            yield from surroundings(names.texts, str(place))
            imported |= names.imported
        level = {place for name in imported for place in _places(name)} - seen


def forget() -> None:
    """Look again: packages count as they were when they were first asked for."""
    for known in (_places, _size, _names, _digest, _recorded):
        known.cache_clear()


@cache
def _places(name: str) -> tuple[Path, ...]:
    if name in sys.stdlib_module_names:
        return ()
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    spec = loaded if isinstance(loaded, ModuleSpec) else PathFinder.find_spec(name)  # other finders may import modules to find some
    return tuple(installed_places(spec)) if spec is not None and is_of_the_application(name, spec) else ()


def _files(place: Path) -> Iterator[Path]:
    """Yield sources and configuration files of a folder, in no order, or a file itself."""
    if not place.is_dir():
        yield place
        return
    for path in place.rglob("*"):
        if path.suffix == ".py" or is_configuration(path.name):
            yield path


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@cache
def _size(place: Path) -> int:
    """Return how large a package is, as far as that matters."""
    size = 0
    for path in _files(place):
        size += _OF_A_FILE + (path.stat().st_size if path.is_file() else 0)
        if size > _MOST_BYTES:
            return _MOST_BYTES + 1
    return size


@cache
def _digest(place: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(_files(place)):
        digest.update(f"{path.relative_to(place.parent)}\n".encode())
        digest.update(_read(path))
    return digest.hexdigest()


@cache
def _names(place: Path) -> _Names:
    texts: set[bytes] = set()
    imported: set[bytes] = set()
    for path in _files(place):
        if path.suffix == ".py":
            source = _read(path)
            texts |= {text for _, text in _TEXT.findall(source)}
            for package, several, called in _IMPORTED.findall(source):
                imported |= {each.strip().partition(b" ")[0].partition(b".")[0] for each in (package or several or called).split(b",")}
    return _Names(_decoded(texts), _decoded(imported))


def _decoded(names: Iterable[bytes]) -> frozenset[str]:
    return frozenset(name.decode(errors="replace") for name in names)


@cache
def _recorded(place: Path) -> str:
    """Return a digest of what ``pip`` has noted of the files of a package, or of the files where it has noted nothing."""
    starts = (f"{place.name}/", f"{place.name},")
    for record in sorted(place.parent.glob("*.dist-info/RECORD")):
        lines = [line for line in _read(record).decode(errors="replace").splitlines() if line.startswith(starts)]
        if lines := [line for line in lines if "__pycache__" not in line]:
            return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
    return _digest(place)
