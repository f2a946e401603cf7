"""Where the time of a CI run goes: phases before pytest, kept in a file that pytest's closing summary shows."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "SPARK_DRAIN_PHASES"


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Append the name and the seconds of the block to the file that the environment names, if any."""
    began = time.monotonic()
    try:
        yield
    finally:
        file = os.environ.get(VARIABLE)
        if file:
            with Path(file).open("a") as stream:
                stream.write(f"{name}\t{time.monotonic() - began:.1f}\n")


def recorded() -> list[tuple[str, float]]:
    """Return the phases so far, in order."""
    file = Path(os.environ.get(VARIABLE, ""))
    if not file.is_file():
        return []
    rows = (line.split("\t") for line in file.read_text().splitlines())
    return [(name, float(seconds)) for name, seconds in rows]
