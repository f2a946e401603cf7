"""A real Kafka broker, and what a test does to its topics."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from devcluster.ports import remembered_ports
from tests.support.java_server import java_server, run_java
from tests.support.waiting import eventually
from tools import jars

__all__ = ["Broker", "broker_running"]

_SECONDS = 60.0
_READ_MS = 20_000
_CLUSTER = "c3BhcmstZHJhaW4tdGVzdA"
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/log
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
"""


class Broker:
    """A client of the broker.

    Parameters
    ----------
    address
        ``host:port``.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._admin = KafkaAdminClient(bootstrap_servers=address)
        self._producer = KafkaProducer(bootstrap_servers=address, metadata_max_age_ms=200)
        self._consumer = KafkaConsumer(bootstrap_servers=address, consumer_timeout_ms=_READ_MS)
        self._reading = threading.Lock()

    def create(self, topic: str, partitions: int) -> None:
        """Make a topic."""
        self._admin.create_topics([NewTopic(name=topic, num_partitions=partitions, replication_factor=1)])

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions until there are so many."""
        self._admin.create_partitions({topic: partitions})

    def write(self, topic: str, partitions: int, records: Iterable[Mapping[str, Any]]) -> None:
        """Write records as JSON, one after the other to each partition in turn, and wait until they are there."""
        eventually(lambda: len(self._producer.partitions_for(topic)) >= partitions, f"topic {topic} has {partitions} partitions", _SECONDS)
        sent = [
            self._producer.send(topic, json.dumps(record).encode(), partition=number % partitions) for number, record in enumerate(records)
        ]
        for each in sent:
            each.get(timeout=_SECONDS)

    def read(self, topic: str) -> list[Any]:
        """Return all that is in a topic now, each record read as JSON."""
        with self._reading:
            # A broker under load learns of a new topic some time after it was made.
            numbers = eventually(lambda: self._partitions(topic), f"topic {topic} is known", _SECONDS)
            partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
            self._consumer.assign(partitions)
            self._consumer.seek_to_beginning()
            left = sum(self._consumer.end_offsets(partitions).values())
            return [json.loads(next(self._consumer).value) for _ in range(left)]

    def _partitions(self, topic: str) -> set[int]:
        self._consumer.topics()  # asks the broker, which may have more partitions than before
        return self._consumer.partitions_for_topic(topic) or set()

    def close(self) -> None:
        """End the client."""
        self._consumer.close()
        self._producer.close()
        self._admin.close()


@contextmanager
def broker_running(folder: Path) -> Iterator[Broker]:
    """Run a broker with its files in a folder."""
    port, controller = remembered_ports(folder / "ports.json", ("broker", "controller")).values()
    settings = folder / "server.properties"
    settings.write_text(_SETTINGS.format(port=port, controller=controller, folder=folder))
    run_java(jars.kafka(), "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(settings))

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    with java_server(folder, jars.kafka(), "kafka.Kafka", str(settings), ready=listens):
        broker = Broker(f"127.0.0.1:{port}")
        try:
            yield broker
        finally:
            broker.close()
