"""The repository as its tests read it."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def files(*patterns: str) -> tuple[Path, ...]:
    """Return the files of the repository, those not committed yet too, but nothing that git ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(path for name in sorted(set(listed.split("\0")) - {""}) if (path := ROOT / name).is_file())


def name(path: Path) -> str:
    """Return a path relative to the repository, for messages."""
    return path.relative_to(ROOT).as_posix()
