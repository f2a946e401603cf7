"""Make the topics of this example, follow how far they are written, and print what is in them."""

import argparse
import contextlib
import json
import sys
import time

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError, UnknownTopicOrPartitionError

DELETION_SECONDS = 30.0


def recreate(bootstrap: str, names: list[str], partitions: int, compact: list[str]) -> None:
    """Make topics, empty ones also where topics of that name exist."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    for name in names:
        with contextlib.suppress(UnknownTopicOrPartitionError):
            admin.delete_topics([name])
        configs = {"cleanup.policy": "compact"} if name in compact else {"retention.ms": "-1"}
        topic = NewTopic(name=name, num_partitions=partitions, replication_factor=1, topic_configs=configs)
        give_up = time.monotonic() + DELETION_SECONDS
        while True:
            try:
                admin.create_topics([topic])
                break
            except TopicAlreadyExistsError:  # a deletion is answered before it is done
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.5)
    admin.close()


def ends(consumer: KafkaConsumer, topic: str) -> dict[str, int]:
    """Return the offset behind the last record, by partition."""
    found = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
    return {str(partition.partition): offset for partition, offset in sorted(consumer.end_offsets(found).items())}


def follow(bootstrap: str, names: list[str], seconds: float) -> None:
    """Print the end offsets of each topic as one JSON line every few seconds, until the reader goes away."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    while True:
        try:
            print(json.dumps({name: ends(consumer, name) for name in names}), flush=True)
        except KafkaError as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        time.sleep(seconds)


def dump(bootstrap: str, topic: str) -> None:
    """Print every record of a topic as a JSON line, those that are never deduplicated included."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, isolation_level="read_committed")
    wanted = ends(consumer, topic)
    partitions = [TopicPartition(topic, int(number)) for number in wanted]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    while any(consumer.position(partition) < wanted[str(partition.partition)] for partition in partitions):
        for partition, records in consumer.poll(timeout_ms=1000).items():
            for record in records:
                line = {"partition": partition.partition, "offset": record.offset}
                print(json.dumps({**line, "key": (record.key or b"").decode(), "value": json.loads(record.value)}, separators=(",", ":")))


def main() -> None:
    """Run one command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    create = commands.add_parser("recreate")
    create.add_argument("--partitions", type=int, default=4)
    create.add_argument("--compact", action="append", default=[], help="topic of which only the last value per key counts")
    create.add_argument("topics", nargs="+")
    follower = commands.add_parser("follow")
    follower.add_argument("--seconds", type=float, default=2.0)
    follower.add_argument("topics", nargs="+")
    dumper = commands.add_parser("dump")
    dumper.add_argument("topic")
    options = parser.parse_args()
    if options.command == "recreate":
        recreate(options.bootstrap, options.topics, options.partitions, options.compact)
    elif options.command == "follow":
        follow(options.bootstrap, options.topics, options.seconds)
    else:
        dump(options.bootstrap, options.topic)


if __name__ == "__main__":
    main()
