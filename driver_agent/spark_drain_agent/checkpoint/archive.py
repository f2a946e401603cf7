"""What an archive holds: noted when it is complete, looked at before it is put back."""

from __future__ import annotations

from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal

__all__ = ["missing_from_archive", "note_archive"]

_CONTENTS = "contents"


def note_archive(files: CheckpointFiles, journal: Journal) -> None:
    """Write the names of all files of the archive, one a line, into it."""
    files.write(f"{journal.work}/{_CONTENTS}", "\n".join(_present(files, journal)))


def missing_from_archive(files: CheckpointFiles, journal: Journal) -> list[str]:
    """Return the files that were in the archive and are not any more; none where an older agent noted nothing."""
    noted = files.read(f"{journal.work}/{_CONTENTS}") or ""
    return sorted(set(noted.splitlines()) - set(_present(files, journal)))


def _present(files: CheckpointFiles, journal: Journal) -> list[str]:
    return [name.removeprefix(f"{journal.work}/") for name in files.below(journal.work)]
