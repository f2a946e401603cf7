"""What an archive holds: noted when it is complete, looked at before it is put back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal
from spark_drain_agent.checkpoint.state_files import is_table, needed_state, tables_named_in

__all__ = ["damage_of_archive", "note_archive"]

_NAMES = "contents"
"""What an agent that noted names alone has left."""
_SIZES = "sizes"
_LOGS = ("offsets/", "commits/")
_STATE = "state/"
_UNREAD = "-"
_TEMPORARY = re.compile(r"/\.[^/]*\.tmp(\.crc)?$")
"""Names under which Spark writes a file before it is there, also in the middle of a drain: a snapshot of its maintenance thread."""


def note_archive(files: CheckpointFiles, journal: Journal) -> Journal:
    """Write size and name of each file of the archive into it; return the journal, which knows that by its digest.

    Of the log entries that Spark would go on from, a digest is noted as well: one of another generation may have the same size.
    """
    sizes = _sizes(files, journal)
    texts = files.read_all([f"{journal.work}/{name}" for name in _read_on(journal) if name in sizes])
    digests = {name.removeprefix(f"{journal.work}/"): _digest(text or "") for name, text in texts.items()}
    noted = "\n".join(f"{size} {digests.get(name, _UNREAD)} {name}" for name, size in sizes.items())
    files.write(f"{journal.work}/{_SIZES}", noted)
    return replace(journal, archive=_digest(noted))


def damage_of_archive(files: CheckpointFiles, journal: Journal) -> list[str]:
    """Return the files of the archive that are not as they were: missing, of another size or text, or too many in a log.

    What the state is not made of is left out: Spark's maintenance thread writes and removes such files beside a drain, and after it.
    """
    sizes = _sizes(files, journal)
    damaged = set(_damage(files, journal, sizes))
    of_state = {name for name in damaged if name.startswith(_STATE)}
    return sorted((damaged - of_state) | _needed(files, journal, of_state, set(sizes)))


def _needed(files: CheckpointFiles, journal: Journal, damaged: set[str], present: set[str]) -> set[str]:
    """Return those of the damaged files that the archived state is made of."""
    if not damaged:
        return set()
    needed = needed_state((name for name in damaged | present if name.startswith(_STATE)), journal.batch_id + 1)
    damaged = damaged.intersection(needed)
    if not any(is_table(name) for name in damaged):
        return damaged
    snapshots = [files.read_bytes(f"{journal.work}/{name}") for name in needed if name.endswith(".zip")]
    named = [tables_named_in(snapshot) for snapshot in snapshots if snapshot is not None]
    return {name for name in damaged if not is_table(name) or any(text is None or name.rpartition("/")[2] in text for text in named)}


def _damage(files: CheckpointFiles, journal: Journal, sizes: dict[str, int]) -> Iterator[str]:
    noted = files.read(f"{journal.work}/{_SIZES}")
    if not journal.archive:
        yield from set((files.read(f"{journal.work}/{_NAMES}") or "").splitlines()) - set(sizes)
        return
    if noted is None or _digest(noted) != journal.archive:
        yield _SIZES
        return
    known = set()
    for line in noted.splitlines():
        size, digest, name = line.split(" ", 2)
        known.add(name)
        if sizes.get(name) != int(size) or (digest != _UNREAD and _digest(files.read(f"{journal.work}/{name}") or "") != digest):
            yield name
    yield from (name for name in sizes if name.startswith(_LOGS) and name not in known)


def _sizes(files: CheckpointFiles, journal: Journal) -> dict[str, int]:
    sizes = {name.removeprefix(f"{journal.work}/"): size for name, size in files.sizes(journal.work).items()}
    return {name: sizes[name] for name in sorted(sizes) if name not in (_NAMES, _SIZES) and not _TEMPORARY.search(name)}


def _read_on(journal: Journal) -> list[str]:
    return [f"{log}{journal.batch_id}" for log in _LOGS]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
