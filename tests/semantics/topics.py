"""Kafka topics with events, as tests write and read them."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.semantics.warm import day
from tests.support.kafka_broker import Broker

__all__ = ["MAX_OFFSETS", "Topic", "events", "kafka", "unlimited"]

MAX_OFFSETS = 20


@dataclass
class Topic:
    """A topic of events, two seconds of event time apart."""

    spark: SparkSession
    broker: Broker
    name: str
    partitions: int = 2
    events: int = 0

    def __post_init__(self) -> None:
        self.broker.create(self.name, self.partitions)

    def add(self, count: int) -> None:
        """Write the next events."""
        numbers = range(self.events, self.events + count)
        self.broker.write(self.name, self.partitions, ({"id": number, "at": day(2 * number)} for number in numbers))
        self.events += count

    def grow(self) -> None:
        """Add two partitions, which the next events go to as well."""
        self.partitions += 2
        self.broker.grow(self.name, self.partitions)

    def stream(self, starting: str = "earliest", **options: str) -> DataFrame:
        """Return the events as they are read from Kafka."""
        return events(kafka(self.spark, self.broker, self.name, startingOffsets=starting, **options))


def kafka(spark: SparkSession, broker: Broker, topic: str, **options: str) -> DataFrame:
    """Return the records of a topic, some at a time."""
    return unlimited(spark, broker, topic, **{"maxOffsetsPerTrigger": str(MAX_OFFSETS), **options})


def unlimited(spark: SparkSession, broker: Broker, topic: str, **options: str) -> DataFrame:
    """Return the records of a topic, as many at a time as there are."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.address).option("subscribe", topic)
    return reader.options(**{"startingOffsets": "earliest", **options}).load()


def events(records: DataFrame, columns: str = "id LONG, at TIMESTAMP") -> DataFrame:
    parsed = records.select(F.from_json(F.col("value").cast("string"), columns).alias("event"))
    return parsed.select("event.*").withWatermark("at", "12 seconds")
