"""Table formats, what is written into them in which way, and the ledger: counted, summed and squared without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from hudi import HudiTableBuilder
from pyarrow import Table  # type: ignore[import-untyped]  # pyarrow ships no types
from pyiceberg.table import StaticTable

from tests.ledger.harness import EVENTS, Crash, Restarter, Spark
from tools import sparks, table_formats

__all__ = ["TRUTH", "Case", "Sums", "bench", "killed_between_commits", "read_on", "spark_of", "sums_in", "until_drained"]

APP = str(Path(__file__).with_name("app.py"))


def spark_of(table_format: str) -> Spark:
    """Return a Spark with the format's jars."""
    release = table_formats.RELEASES[table_format]
    return Spark(sparks.install(release) if release else None, tuple(table_formats.jars(table_format)))


@contextmanager
def bench(table_format: str, log: Path) -> Iterator[Restarter]:
    """Run a JVM in which applications that write to a format start one after the other."""
    restarter = Restarter(log, spark_of(table_format))
    try:
        yield restarter
    finally:
        restarter.close()


@dataclass(frozen=True)
class Case:
    """How events get into a table.

    Parameters
    ----------
    format
        ``delta``, ``iceberg`` or ``hudi``.
    into
        ``path`` and ``name`` of the table for ``start``, ``foreachBatch``, or what ``toTable`` is given.
    rows
        ``windows`` of events, the ``records`` themselves, or ``totals``.
    key
        What is in the key of a window's row besides the data: the ``version``, the ``generation``, or ``nothing``.
    mode
        Output mode.
    source
        ``files``, or the format of the input table.
    writeOptions, readOptions
        Of the writer, and of the reader of a table; ``{base}`` stands for the test's folder.
    confs
        Of the session, beside those of the format.
    """

    format: str
    into: str = "path"
    rows: str = "windows"
    key: str = "version"
    mode: str = "append"
    source: str = "files"
    writeOptions: dict[str, str] = field(default_factory=dict)  # noqa: N815  # as the application reads it
    readOptions: dict[str, str] = field(default_factory=dict)  # noqa: N815
    confs: dict[str, str] = field(default_factory=dict)

    @property
    def app(self) -> tuple[str, str]:
        """The application with its last argument."""
        return APP, json.dumps(asdict(self))

    def table(self, base: Path) -> Path:
        """Return where the table is."""
        return base / "lake" / "db" / "counts" if self.format == "iceberg" and self.into != "path" else base / "table"


def until_drained(restarter: Restarter, case: Case, source: Path, base: Path, **more: Any) -> dict[str, Any]:
    """Run version 1, drain it after three batches, and return the drain's report."""
    first = restarter.run("agent", "v1", source, base, "cut", batches=3, app=case.app, **more)
    assert first["outcome"] == "ran", first["detail"]
    report: dict[str, Any] = first["drain"]
    return report


def read_on(restarter: Restarter, case: Case, source: Path, base: Path, version: str = "v2", **more: Any) -> None:
    """Run another version to the end of the input, and drain it."""
    second = restarter.run("agent", version, source, base, "consume", app=case.app, **more)
    assert second["outcome"] == "ran", second["detail"]


def killed_between_commits(case: Case, flush: str, glob: str, source: Path, base: Path, *options: str) -> None:
    """Kill a driver when its sink has committed the flush, and Spark has not.

    Parameters
    ----------
    case
        What it writes.
    flush
        The conf spark.sparkdrain.flush.
    glob
        What is new below ``base`` when the sink has committed.
    source, base
        Input and the test's folder.
    options
        Of the drain.
    """
    flushing = "watermark-raised" if flush == "Auto" else "flush-logged"
    when = f"{flushing}>{glob}" if case.into != "foreachBatch" else "after-sink-write"
    Crash(flush, when, options, case.app, spark_of(case.format)).happen(source, base)
    checkpoint = base / "checkpoints" / "counts"
    folders = [checkpoint, *checkpoint.glob("_drain/*")]
    assert any(_newest(folder / "offsets") > _newest(folder / "commits") for folder in folders), "Spark has committed the flush"


def _newest(log: Path) -> int:
    return max((int(entry.name) for entry in log.glob("*") if entry.name.isdigit()), default=-1)


@dataclass(frozen=True)
class Sums:
    """How many events were counted, the sum of their numbers and that of the squares."""

    count: int
    total: int
    squares: int

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.count + other.count, self.total + other.total, self.squares + other.squares)


TRUTH = Sums(EVENTS, sum(range(EVENTS)), sum(number * number for number in range(EVENTS)))


def sums_in(case: Case, base: Path, *, complete: bool = False) -> Sums:
    """Read the table without Spark; ``complete``: of rows for one bucket the one that counts most."""
    rows = _READERS[case.format](case.table(base)).to_pylist()
    if complete:
        rows = list({row["bucket"]: row for row in sorted(rows, key=lambda row: row["n"])}.values())
    return Sums(*(sum(row[column] for row in rows) for column in ("n", "s", "q")))


def _delta(table: Path) -> Table:
    return DeltaTable(str(table)).to_pyarrow_table()


def _iceberg(table: Path) -> Table:
    version = (table / "metadata" / "version-hint.text").read_text()
    return StaticTable.from_metadata(str(table / "metadata" / f"v{version}.metadata.json")).scan().to_arrow()


def _hudi(table: Path) -> Table:
    return Table.from_batches(HudiTableBuilder.from_base_uri(str(table)).build().read())


_READERS = {"delta": _delta, "iceberg": _iceberg, "hudi": _hudi}
