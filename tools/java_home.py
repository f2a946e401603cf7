"""A JAVA_HOME whose Java finds no `readlink`, for tests of Spark on local files.

Hadoop runs that program twice for each file that Spark renames, with a URI in place of a path, so that it never has an answer. To find no
such program is the same to Hadoop and costs a third of the time: 150 times in a test of one query, a tenth of all that it computes.
"""

import os
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path

from devcluster.locks import only_one

__all__ = ["environment"]

_NOT_FOUND = "readlink"
_FOLDER = Path(sys.prefix) / f"java-without-{_NOT_FOUND}"


def environment() -> dict[str, str]:
    """Return what makes Spark start this Java; its programs are found where they are found now, all but one."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return {"JAVA_HOME": str(_home()), "PATH_OF_JAVA": os.pathsep.join(_without(entry) for entry in entries)}


@cache
def _home() -> Path:
    configured = os.environ.get("JAVA_HOME")
    found = f"{configured}/bin/java" if configured else shutil.which("java")
    assert found, "Spark needs Java: there is no `java`"
    java = Path(found).resolve()
    if java.is_relative_to(_FOLDER):  # in a process that was given it
        return java.parents[1]
    home = _FOLDER / java.as_posix().strip("/").replace("/", "-")
    with only_one(home):
        if not (home / "bin/java").exists():
            (home / "bin").mkdir(parents=True, exist_ok=True)
            part = home / "bin/.java"
            part.write_text(f'#!/bin/sh\nPATH=$PATH_OF_JAVA exec {shlex.quote(str(java))} "$@"\n')
            part.chmod(0o755)
            part.rename(home / "bin/java")
    return home


@cache
def _without(entry: str) -> str:
    """Return a folder of links to a folder's other programs, or the folder itself where it has no such program."""
    folder = Path(entry).resolve()
    if not entry or not (folder / _NOT_FOUND).exists():
        return entry
    links = _FOLDER / f"{folder.as_posix().strip('/').replace('/', '-')}-{folder.stat().st_mtime_ns}"
    with only_one(links):
        if not links.exists():
            part = links.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            for program in folder.iterdir():
                if program.name != _NOT_FOUND:
                    (part / program.name).symlink_to(program)
            part.rename(links)
    return str(links)
