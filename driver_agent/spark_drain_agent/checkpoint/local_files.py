"""Files on the driver's own machine, without Hadoop's local filesystem: it starts a program to ask for each file's permissions."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn
from uuid import uuid4

__all__ = ["below", "copy", "is_missing", "replace"]


def replace(path: Path, text: str) -> None:
    """Create or replace a file as a whole, also where the machine fails; Hadoop deletes the old one before it renames the new one.

    Raises
    ------
    OSError
        It could not be written; the old one is there.
    """
    part = path.with_name(f".{path.name}.{uuid4()}.tmp")
    try:
        with part.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        checksum(path).unlink(missing_ok=True)  # a file without a checksum is read without being checked
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def is_missing(path: Path) -> bool:
    """Return whether there is nothing of that name; what cannot be looked at may be there."""
    try:
        path.stat()
    except OSError as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)
    return False


def below(folder: Path) -> list[Path]:
    """Return all files in a folder and its folders, without checksums; none where there is no folder.

    Raises
    ------
    OSError
        A folder cannot be read.
    """
    if not folder.is_dir():
        return []
    files = [Path(base, name) for base, _, names in os.walk(folder, onerror=_raise, followlinks=True) for name in names]
    return [path for path in files if not (path.name.startswith(".") and path.suffix == ".crc")]


def _raise(error: OSError) -> NoReturn:
    raise error


def copy(source: Path, target: Path) -> None:
    """Copy a file, in place of what has its name, or a folder with all that is in it to a name that does not exist; with checksums.

    Raises
    ------
    OSError
        It could not be copied, or is not there.
    """
    if not source.is_dir():
        shutil.copyfile(source, target)
        if checksum(source).exists():
            shutil.copyfile(checksum(source), checksum(target))
        return
    for base, _, names in os.walk(source, onerror=_raise, followlinks=True):  # copytree also sets times, which not every volume allows
        folder = target / Path(base).relative_to(source)
        folder.mkdir(parents=True)
        for name in names:
            shutil.copyfile(Path(base, name), folder / name)


def checksum(path: Path) -> Path:
    """Return where Hadoop keeps the checksum of a file."""
    return path.with_name(f".{path.name}.crc")
