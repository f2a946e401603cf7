"""Write a query's keyed state to Parquet, as it was after its last batch, with Spark's own reader of state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_drain_agent.checkpoint.empty_state import awaits_first_batch
from spark_drain_agent.checkpoint.exported_columns import distinct_names, exportable
from spark_drain_agent.checkpoint.journal import read_journal
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.spark_internals.errors import JavaError

__all__ = ["ExportError", "StatePart", "batch_with_state", "export_state", "parts_of", "read_state"]


class ExportError(Exception):
    """The state could not be written; it is written anew by the next try."""


@dataclass(frozen=True)
class StatePart:
    """A part of the state that the reader shows as one table.

    Parameters
    ----------
    folder
        Relative to the query's folder: operator, then store or variable.
    options
        For the reader.
    """

    folder: str
    options: Mapping[str, str]


def parts_of(operators: Sequence[Mapping[str, Any]]) -> list[StatePart]:
    """Return what there is to read, from the rows of Spark's ``state-metadata`` reader.

    A join shows its two sides and transformWithState each of its variables; any other operator has one store.
    """
    found: dict[str, StatePart] = {}
    for row in operators:
        operator, name = str(row["operatorId"]), str(row["operatorName"])
        for folder, options in _tables(name, str(row["stateStoreName"]), str(row.get("operatorProperties") or "")):
            part = StatePart(f"{operator}-{name}/{folder}", {"operatorId": operator, **options})
            found.setdefault(part.folder, part)
    return list(found.values())


def _tables(operator: str, store: str, properties: str) -> list[tuple[str, dict[str, str]]]:
    if operator == "symmetricHashJoin":
        return [(side, {"joinSide": side}) for side in ("left", "right")]
    if not operator.startswith("transformWithState"):
        return [(store, {"storeName": store})]
    described = json.loads(properties or "{}")
    variables = [variable["stateName"] for variable in described.get("stateVariables", [])]
    # Timers are kept in variables of Spark's own, which the reader shows by another option only.
    found = {name: {"stateVarName": name} for name in variables if not name.startswith("$")}
    if str(described.get("timeMode", "NoTime")) not in ("NoTime", "None"):
        found[distinct_names([*found, "timers"])[-1]] = {"readRegisteredTimers": "true"}
    return list(found.items())


def batch_with_state(checkpoint: Checkpoint) -> int | None:
    """Return the last batch whose state can be read; None before a generation has committed its first one."""
    journal = read_journal(checkpoint.files)
    if not checkpoint.files.is_folder(checkpoint.name("state")) or (journal is not None and awaits_first_batch(checkpoint.files, journal)):
        return None
    return checkpoint.newest_commit


def read_state(session: SparkSession, checkpoint: str, batch_id: int) -> Iterator[tuple[str, DataFrame]]:
    """Yield the state after a batch by the folders of its parts, as it is exported; raises what Spark does."""
    # The reader asks for a coordinator, which Spark makes with its manager of queries: a new driver may have started none yet.
    _ = session.streams.active
    operators = [row.asDict() for row in session.read.format("state-metadata").load(checkpoint).select("*").collect()]
    for part in parts_of(operators):
        reader = session.read.format("statestore").option("batchId", batch_id).options(**part.options)
        yield part.folder, exportable(reader.load(checkpoint))


def export_state(session: SparkSession, checkpoint: str, batch_id: int, target: str) -> None:
    """Write the state after a batch, one folder per operator and store below ``target``; repeating it replaces them.

    Raises
    ------
    ExportError
        It cannot be read or written.
    """
    try:
        for folder, state in read_state(session, checkpoint, batch_id):
            state.write.mode("overwrite").parquet(f"{target}/{folder}")
    except (*JavaError, KeyError, ValueError) as error:
        raise ExportError(f"the state after batch {batch_id} in {checkpoint} could not be exported to {target}: {error}") from error
