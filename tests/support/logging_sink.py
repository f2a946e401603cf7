"""A sink that keeps its own log of what it has committed below the option checkpointLocation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Row
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

__all__ = ["LoggingSource", "logged_in"]

_LOG = "sinks/log"


@dataclass
class Written(WriterCommitMessage):
    """What a task has written."""

    ids: list[int]


class Logging(DataSourceStreamWriter):
    """Rows count once their batch is in the log."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._log = Path(options["checkpointLocation"], _LOG)

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Return the ids."""
        return Written([number for row in iterator for number in row["ids"]])

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  # PySpark's name
        """Log the batch."""
        self._log.mkdir(parents=True, exist_ok=True)
        (self._log / str(batchId)).write_text(json.dumps([number for message in messages if message for number in message.ids]))


class LoggingSource(DataSource):
    """Makes the sink."""

    @classmethod
    def name(cls) -> str:
        """Return its name."""
        return "with_a_log"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # PySpark's name
        """Return the sink."""
        return Logging(self.options)


def logged_in(checkpoint: Path) -> Counter[int]:
    """Return how often each id is in the log."""
    return Counter(number for path in (checkpoint / _LOG).iterdir() for number in json.loads(path.read_text()))
