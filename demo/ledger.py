"""Compares what the two versions of the job wrote with an independent count of what was put in."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Cell = tuple[str, str]
"""Carrier and start of the 6-hour window, ISO 8601."""


@dataclass(frozen=True)
class Output:
    """Flights by cell, as one version of the job wrote them."""

    version: str
    flights: Counter[Cell]
    rows: int

    def of_carrier(self, carrier: str) -> int:
        """Return the flights of one carrier."""
        return sum(count for (name, _), count in self.flights.items() if name == carrier)


@dataclass(frozen=True)
class Ledger:
    """The outcome.

    Parameters
    ----------
    expected : Counter
        Flights by cell, counted from the data set itself.
    outputs : tuple of Output
        One per version of the job.
    """

    expected: Counter[Cell]
    outputs: tuple[Output, ...]

    @property
    def counted(self) -> Counter[Cell]:
        """Flights by cell over all versions; nothing is deduplicated."""
        total: Counter[Cell] = Counter()
        for output in self.outputs:
            total.update(output.flights)
        return total

    @property
    def records(self) -> int:
        """How many flights were put in."""
        return self.expected.total()

    @property
    def lost(self) -> int:
        """Flights missing. By cell: a flight too few in one window does not make up for one too many in another."""
        return (self.expected - self.counted).total()

    @property
    def doubled(self) -> int:
        """Flights counted too often, those that were never put in among them."""
        return (self.counted - self.expected).total()

    @property
    def exact(self) -> bool:
        """Whether every flight was counted once."""
        return self.expected == self.counted

    def line(self) -> str:
        """Return the outcome in one line."""
        return f"ledger: records={self.records} lost={self.lost} doubled={self.doubled}"

    def table(self) -> str:
        """Return the totals per carrier, versions beside the data set's own count."""
        carriers = sorted({carrier for carrier, _ in self.expected | self.counted})
        lines = [f"{'carrier':8}{''.join(f'{output.version:>10}' for output in self.outputs)}{'sum':>10}{'input':>10}"]
        for carrier in carriers:
            parts = [output.of_carrier(carrier) for output in self.outputs]
            there = sum(count for (name, _), count in self.expected.items() if name == carrier)
            mark = "" if sum(parts) == there else "  <- differs"
            lines.append(f"{carrier:8}{''.join(f'{part:>10,}' for part in parts)}{sum(parts):>10,}{there:>10,}{mark}")
        return "\n".join(lines)


def outputs(dump: Iterable[str], *, last_per_key: bool) -> tuple[Output, ...]:
    """Read the output topic.

    Parameters
    ----------
    dump : iterable of str
        One JSON object per record, with ``partition``, ``offset``, ``key`` and ``value``.
    last_per_key : bool
        The sink is idempotent: a later record of the same key replaces an earlier one. Otherwise every record counts.

    Raises
    ------
    ValueError
        If a line is no such record.
    """
    values: dict[object, Mapping[str, Any]] = {}
    for line in dump:
        record = json.loads(line)
        place = (record["partition"], record["offset"])
        values[record["key"] if last_per_key else place] = record["value"]
    found: dict[str, tuple[Counter[Cell], list[int]]] = {}
    for value in values.values():
        flights, rows = found.setdefault(value["version"], (Counter(), []))
        count = int(value["flights"])
        flights[value["carrier"], _minute(value["windowStart"])] += count
        rows.append(count)
    return tuple(Output(version, flights, len(rows)) for version, (flights, rows) in sorted(found.items()))


def _minute(timestamp: str) -> str:
    return timestamp[:16]
