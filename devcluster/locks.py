"""One process at a time makes a thing of the cache."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster.errors import DevclusterError


@contextmanager
def only_one(target: Path) -> Iterator[None]:
    """Hold the lock beside a path; made with its parent folder where missing.

    Raises
    ------
    DevclusterError
        If it cannot be made there.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = target.with_name(f".{target.name}.lock").open("w")
    except OSError as error:
        raise DevclusterError(f"{target.parent} cannot be written to ({error.strerror}): name another folder in XDG_CACHE_HOME") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
