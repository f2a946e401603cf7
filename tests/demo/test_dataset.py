from collections import Counter
from datetime import datetime, timedelta

import pytest

from demo import dataset
from examples.flights import produce


def floor(timestamp: str) -> str:
    moment = datetime.fromisoformat(timestamp)
    return (moment - timedelta(hours=moment.hour % 6, minutes=moment.minute)).strftime("%Y-%m-%dT%H:%M")


def test_the_producer_writes_what_pandas_counts() -> None:
    rows = produce.rows()
    assert Counter((row["carrier"], floor(produce.scheduled(row))) for row in rows) == dataset.count()
    assert len(rows) == dataset.FLIGHTS


def test_the_first_flights_are_the_same_for_both() -> None:
    first = sorted(produce.rows(), key=produce.scheduled)[:5000]
    assert Counter((row["carrier"], floor(produce.scheduled(row))) for row in first) == dataset.count(5000)


@pytest.mark.parametrize("ends", [(0, 0, 0, 0), (250, 250, 250, 250), (300, 7, 250, 0)])
def test_flights_before_offsets_are_those_that_the_producer_put_there(ends: tuple[int, ...]) -> None:
    first = sorted(produce.rows(), key=produce.scheduled)[:2000]
    before = [row for number, row in enumerate(first) if number // len(ends) < ends[number % len(ends)]]
    expected = Counter((row["carrier"], floor(produce.scheduled(row))) for row in before)
    assert dataset.count_before({str(partition): end for partition, end in enumerate(ends)}) == expected


def test_messages_are_in_event_time_order() -> None:
    messages = produce.flights(2000)
    times = [message.decode().partition('"scheduled":"')[2][:20] for message in messages]
    assert times == sorted(times)
    assert times[0] == "2013-01-01T05:15:00Z"
