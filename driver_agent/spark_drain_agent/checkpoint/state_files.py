"""Names of the files in which Spark's providers keep the versions of state."""

from __future__ import annotations

import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable

__all__ = ["is_table", "lacking", "lacking_ids", "needed_state", "tables_named_in", "versions_of"]

_VERSION = re.compile(r"(?P<version>\d+)(?P<unique>_[0-9a-f-]+)*\.(?P<kind>delta|snapshot|changelog|zip)$")
_TABLE = re.compile(r"(^|/)(SSTs|logs)/[^/]+$")
_TABLES = "metadata"
"""File in a snapshot of RocksDB that names the tables of which it is made."""
_WHOLE = ("snapshot", "zip")


def versions_of(names: Iterable[str]) -> dict[str, int]:
    """Return the versions of state by the names of the files that hold one, or a change to the one before."""
    return {name: int(found["version"]) for name in names if (found := _VERSION.search(name)) is not None}


def needed_state(names: Iterable[str], version: int) -> list[str]:
    """Return the files of which a version of state is made, and those that say what it is.

    As the providers load it (Spark's HDFSBackedStateStoreProvider, RocksDBFileManager): the newest whole version up to that one, and each
    change since. Where files have unique ids, whose order only the files know, all up to that version are needed.

    Parameters
    ----------
    names
        Of all files below the folder of the state.
    version
        One more than the id of the batch after which the state is wanted.
    """
    by_folder: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_folder[name.rpartition("/")[0]].append(name)
    return sorted(name for found in by_folder.values() for name in _needed(found, version))


def _needed(names: list[str], version: int) -> list[str]:
    versioned = {name: found for name in names if (found := _VERSION.search(name)) is not None}
    of_others = [name for name in names if name not in versioned]
    until = {name: int(found["version"]) for name, found in versioned.items() if int(found["version"]) <= version}
    if any(found["unique"] for found in versioned.values()):
        return [*of_others, *until]
    first = max((number for name, number in until.items() if versioned[name]["kind"] in _WHOLE), default=0)
    whole = [name for name, number in until.items() if number == first and versioned[name]["kind"] in _WHOLE]
    return [*of_others, *whole, *(name for name, number in until.items() if number > first)]


def lacking(names: Iterable[str], version: int) -> list[str]:
    """Return the folders that have files of the version before, of which each batch writes the next one, and none of a version."""
    folders: dict[int, set[str]] = defaultdict(set)
    for name in names:
        if (found := _VERSION.search(name)) is not None:
            folders[int(found["version"])].add(name.rpartition("/")[0])
    return sorted(folders[version - 1] - folders[version])


def lacking_ids(names: Iterable[str], version: int, ids: Iterable[str]) -> list[str]:
    """Return those of the unique ids, by which a commit tells the files of a version from what failed tries have left, that no file has."""
    versioned = (found[0] for name in names if (found := _VERSION.search(name)) is not None and int(found["version"]) == version)
    there = {each for file in versioned for each in file.partition(".")[0].split("_")[1:]}
    return sorted(set(ids) - there)


def is_table(name: str) -> bool:
    """Return whether a file is one of RocksDB's, which its snapshots refer to (Spark's RocksDBFileManager)."""
    return _TABLE.search(name) is not None


def tables_named_in(snapshot: bytes) -> str | None:
    """Return the text in which a snapshot of RocksDB names its tables, None where it cannot be read.

    Parameters
    ----------
    snapshot
        What a file such as ``8.zip`` holds.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(snapshot)) as archive:
            return archive.read(_TABLES).decode()
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError):
        return None
