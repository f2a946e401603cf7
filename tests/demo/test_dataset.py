from collections import Counter
from datetime import datetime, timedelta

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


def test_messages_are_in_event_time_order() -> None:
    messages = produce.flights(2000)
    times = [message.decode().partition('"scheduled":"')[2][:20] for message in messages]
    assert times == sorted(times)
    assert times[0] == "2013-01-01T05:15:00Z"
