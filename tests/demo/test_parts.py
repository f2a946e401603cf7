"""The parts of a drain, as the demonstration tells them."""

import pytest

from demo.batches import Batch
from demo.parts import line, passed


@pytest.mark.parametrize(
    ("shown", "parts"),
    [
        ("||\n", set()),
        ("||Accepted Reconciling \n", {"accepted"}),
        ("0ab1||Accepted Acknowledged Reconciling \n", {"accepted", "notified", "acknowledged"}),
        (
            "0ab1|2026-01-01T00:00:00Z|Accepted Acknowledged SourcesStopped Flushed ExecutorsDrained ScaledDown Succeeded Finished \n",
            {"accepted", "notified", "acknowledged", "sources stopped", "flushed", "executors drained", "suspended", "pods gone"},
        ),
    ],
)
def test_what_is_over_in_a_line_of_the_watch(shown: str, parts: set[str]) -> None:
    assert passed(shown) == parts


def batch(number: int, rows: int, seconds: float) -> Batch:
    return Batch(run="r", number=number, rows=rows, start={}, end={}, open_rows=0, dropped=0, watermark="", seconds=seconds)


def test_the_parts_are_told_in_order_beside_a_batch_that_read_something() -> None:
    before = [batch(0, 9, 4.0), batch(1, 9, 1.5), batch(2, 0, 0.1), batch(3, 9, 2.0)]
    told = line("flights-v1", {"pods gone": 6.9, "notified": 0.3, "accepted": 0.25}, before)
    assert told == (
        "flights-v1, seconds after kubectl apply: accepted 0.2, notified 0.3, pods gone 6.9; an ordinary batch took 2.0 (1.5 to 4.0)"
    )
    assert line("flights-v1", {}, []).endswith("an ordinary batch took an unknown time")
