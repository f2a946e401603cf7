"""What Spark's own log says about each batch of a streaming query."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_MARK = "Streaming query made progress: {"

Offsets = Mapping[str, int]


@dataclass(frozen=True)
class Batch:
    """One batch that has been committed.

    Parameters
    ----------
    run : str
        Spark's id of the query's run.
    number : int
        Batch id.
    rows : int
        Records read.
    start, end : mapping of str to int
        First offset read and offset behind the last one, by partition of the one Kafka topic that is read.
    open_rows : int
        Keys in state after it, all operators together.
    dropped : int
        Rows that came too late for the watermark.
    watermark : str
        Event time, ISO 8601; "" where the query has none.
    seconds : float
        How long it took, from its plan to its commit.
    """

    run: str
    number: int
    rows: int
    start: Offsets
    end: Offsets
    open_rows: int
    dropped: int
    watermark: str
    seconds: float


def read(lines: Iterable[str]) -> Iterator[Batch]:
    """Yield the batches that a driver's log reports.

    Parameters
    ----------
    lines : iterable of str
        The log. Spark writes progress as JSON over many lines, of which only the last is a lone brace.

    Raises
    ------
    ValueError
        If a report is not what Spark writes.
    """
    collected: list[str] = []
    for line in lines:
        if _MARK in line:
            collected = ["{"]
        elif collected:
            collected.append(line)
            if line.rstrip() == "}":
                report = json.loads("\n".join(collected))
                collected = []
                if _is_batch(report):
                    yield _batch(report)


def unread(batches: Collection[Batch], end: Offsets) -> list[str]:
    """Say which records no batch has accounted for; what cannot be shown to be whole is a finding.

    The count of late rows is only worth something when the reports of all batches that read something were seen.

    Parameters
    ----------
    batches : collection of Batch
        What was seen, in any order; a batch may be there more than once.
    end : mapping of str to int
        The offset behind the last record, by partition.

    Returns
    -------
    list of str
        One sentence per gap; empty when every record from offset 0 to the end is in some batch.
    """
    findings = []
    for partition, last in end.items():
        reached = 0
        pieces = sorted(
            {(batch.start.get(partition, 0), batch.end[partition]) for batch in batches if batch.rows and partition in batch.end}
        )
        for start, stop in pieces:
            if start > reached:
                findings.append(f"no report of partition {partition}, offsets {reached} to {start - 1}")
            reached = max(reached, stop)
        if reached < last:
            findings.append(f"no report of partition {partition}, offsets {reached} to {last - 1}")
    return findings


def _is_batch(report: Mapping[str, Any]) -> bool:
    # An idle query reports now and then without having run a batch; there is no time for adding one then.
    return "addBatch" in report["durationMs"]


def _batch(report: Mapping[str, Any]) -> Batch:
    source = report["sources"][0] if report["sources"] else {}
    operators = report["stateOperators"]
    return Batch(
        run=report["runId"],
        number=report["batchId"],
        rows=sum(item["numInputRows"] for item in report["sources"]),
        start=_one_topic(source.get("startOffset")),
        end=_one_topic(source.get("endOffset")),
        open_rows=sum(operator["numRowsTotal"] for operator in operators),
        dropped=sum(operator["numRowsDroppedByWatermark"] for operator in operators),
        watermark=report.get("eventTime", {}).get("watermark", ""),
        seconds=report["durationMs"]["triggerExecution"] / 1000,
    )


def _one_topic(offsets: Mapping[str, Mapping[str, int]] | None) -> Offsets:
    if not offsets:
        return {}
    (partitions,) = offsets.values()
    return dict(sorted(partitions.items(), key=lambda item: int(item[0])))
