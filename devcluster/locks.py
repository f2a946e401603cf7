"""One process at a time makes a thing of the cache."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def only_one(target: Path) -> Iterator[None]:
    """Hold the lock beside a path; made with its parent folder where missing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f".{target.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
