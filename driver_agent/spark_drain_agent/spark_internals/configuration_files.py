"""Configuration files that a program reads, by the names that occur in it."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from zipimport import zipimporter

from spark_drain_agent.spark_internals.unknown import unlike_any_other

__all__ = ["LONGEST_NAME", "configuration_files", "is_configuration"]

_SUFFIXES = frozenset(["avsc", "cfg", "conf", "env", "ini", "json", "properties", "proto", "sql", "toml", "yaml", "yml"])
LONGEST_NAME = 1024
_LARGEST = 2**20
_OF_ONE_RUN = ("/etc/resolv.conf", "/proc/", "/run/", "/var/run/")


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


_first: dict[Path, str] = {}


def _digest(path: Path) -> str:
    """Return the digest of a file; of one that has changed since it was first asked for, nobody knows which the program has read."""
    now = _content_digest(path)
    return now if _first.setdefault(path, now) == now else unlike_any_other()


def _content_digest(path: Path) -> str:
    try:
        content = b"" if str(path).startswith(_OF_ONE_RUN) else _content(path)
    except (OSError, ValueError, ImportError, zlib.error):
        return ""
    return hashlib.sha256(content).hexdigest() if 0 < len(content) <= _LARGEST else ""


def _content(path: Path) -> bytes:
    """Return what a file holds, or a part of a zip file of modules; nothing where there is none, or too much."""
    if path.is_file():
        return path.read_bytes() if path.stat().st_size <= _LARGEST else b""
    archive = next((above for above in path.parents if above.is_file()), None)
    return b"" if archive is None else bytes(zipimporter(str(archive)).get_data(str(path)))
