import json
from collections.abc import Mapping

import pytest

from demo.batches import Batch, read, unread


def report(number: int, start: Mapping[str, int] | None, end: Mapping[str, int], *, executed: bool = True, dropped: int = 0) -> str:
    operators: list[dict[str, int]] = [{"numRowsTotal": 7, "numRowsDroppedByWatermark": dropped}]
    rows = sum(end.values()) - sum((start or {}).values())
    source = {"numInputRows": rows, "startOffset": None if start is None else {"flights": start}, "endOffset": {"flights": end}}
    progress = {
        "runId": "r",
        "batchId": number,
        "durationMs": {"addBatch": 5, "triggerExecution": 1500} if executed else {"triggerExecution": 1},
        "eventTime": {"watermark": "2013-01-01T00:00:00.000Z"},
        "stateOperators": operators,
        "sources": [source],
    }
    return f"26/11/21 00:00:00 INFO MicroBatchExecutionContext: Streaming query made progress: {json.dumps(progress, indent=2)}"


def parsed(*reports: str) -> list[Batch]:
    return list(read("\n".join(["26/11/21 INFO noise", *reports, "} of another sort"]).splitlines()))


def test_reports_are_found_between_other_lines() -> None:
    first, second = parsed(report(0, None, {"0": 5, "1": 4}), "noise {", report(1, {"0": 5, "1": 4}, {"0": 9, "1": 4}, dropped=2))
    assert (first.number, first.rows, first.start, first.end, first.open_rows) == (0, 9, {}, {"0": 5, "1": 4}, 7)
    assert (second.rows, second.dropped, second.watermark, second.seconds) == (4, 2, "2013-01-01T00:00:00.000Z", 1.5)


def test_an_idle_report_is_no_batch() -> None:
    assert parsed(report(3, {"0": 5}, {"0": 5}, executed=False)) == []


def test_a_report_that_the_log_ends_in_is_left_out() -> None:
    whole = report(0, None, {"0": 5})
    assert list(read(whole.splitlines()[:-1])) == []


@pytest.mark.parametrize(
    ("reports", "end", "gaps"),
    [
        ([(None, 5), (5, 9)], 9, []),
        ([(5, 9), (None, 5), (5, 9)], 9, []),
        ([(None, 5), (6, 9)], 9, ["no report of partition 0, offsets 5 to 5"]),
        ([(None, 5)], 9, ["no report of partition 0, offsets 5 to 8"]),
        ([(3, 9)], 9, ["no report of partition 0, offsets 0 to 2"]),
        ([], 1, ["no report of partition 0, offsets 0 to 0"]),
    ],
)
def test_records_without_a_report_are_found(reports: list[tuple[int | None, int]], end: int, gaps: list[str]) -> None:
    batches = parsed(*(report(number, None if a is None else {"0": a}, {"0": b}) for number, (a, b) in enumerate(reports)))
    assert unread(batches, {"0": end}) == gaps
