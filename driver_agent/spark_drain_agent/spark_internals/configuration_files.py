"""Configuration files that a program reads, by the names that occur in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

__all__ = ["LONGEST_NAME", "configuration_files", "is_configuration"]

_SUFFIXES = frozenset(["avsc", "cfg", "conf", "env", "ini", "json", "properties", "proto", "sql", "toml", "yaml", "yml"])
LONGEST_NAME = 1024
_LARGEST = 2**20
_OF_ONE_RUN = ("/proc/", "/run/", "/var/run/")


def is_configuration(name: str) -> bool:
    """Return whether a file of this name, or path, is one with a configuration, as its suffix says."""
    return name.rpartition(".")[2].lower() in _SUFFIXES and len(name) <= LONGEST_NAME


def configuration_files(texts: Iterable[str], folders: Iterable[Path]) -> Iterator[str]:
    """Yield name and digest of each configuration file, as its suffix says, that one of these texts names, as it is or in a folder."""
    for text in sorted({*texts}):
        if is_configuration(text):
            for path in (Path(text), *(folder / text for folder in folders)):
                if digest := _digest(path.absolute()):
                    yield f"{path.name} {digest}"
                    break


@cache
def _digest(path: Path) -> str:
    """Return the digest of a file, as it was when it was first asked for: what the program has read does not change with it."""
    try:
        if str(path).startswith(_OF_ONE_RUN) or not path.is_file() or path.stat().st_size > _LARGEST:
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return ""
