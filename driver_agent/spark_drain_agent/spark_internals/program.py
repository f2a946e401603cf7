"""The program that runs on the driver, as text that is equal for two runs of one version."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

from spark_drain_agent.spark_internals.application_modules import is_own, sources
from spark_drain_agent.spark_internals.configuration_files import configuration_files
from spark_drain_agent.spark_internals.environment import surroundings
from spark_drain_agent.spark_internals.run_texts import without_ids
from spark_drain_agent.spark_internals.source_code import source_code

__all__ = ["look_at_program", "program_text"]

_looked_at: set[str] = set()


def program_text(modules: Iterable[str] = ()) -> str:
    """Return the arguments, a digest of the main file and of the modules that it imports, and what they name of variables and files.

    Parameters
    ----------
    modules
        Whole names of further modules, where an application's functions come from.
    """
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    source = _source(main)
    code = source_code(getattr(main, "__package__", None) or "", source)
    imported = sources([*code.imported, *modules, *([spec.name] if spec is not None else [])], ())
    file = str(getattr(main, "__file__", None) or "")
    arguments = configuration_files([argument.rpartition("=")[2] for argument in sys.argv[1:]], [])
    parts = [hashlib.sha256(source).hexdigest(), *sorted({*imported, *surroundings(code.texts, file), *arguments})]
    return "\n".join([str([without_ids(argument) for argument in sys.argv[1:]]), *parts])


def look_at_program() -> None:
    """Note what the program is made of, as digests made later count it: its files may change beneath what was loaded from them."""
    if new := {*sys.modules} - _looked_at:
        program_text([name for name in new if is_own(name, ())])
        _looked_at.update(new)


def _source(main: ModuleType) -> bytes:
    file = getattr(main, "__file__", None)
    if file is None or (Path(file).exists() and not Path(file).is_file()):  # what a pipe gave is gone
        return b""
    return _read(main, file)


@cache
def _read(main: ModuleType, file: str) -> bytes:
    """Read a main file, or a part of a zip file: as it was when it was first asked for, since it may change beneath what runs."""
    read = getattr(getattr(main, "__loader__", None), "get_data", None)
    try:
        return Path(file).read_bytes() if read is None else bytes(read(file))
    except OSError:
        return b""
