"""One session for all tests of this folder; its JVM ends with the last of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from spark_drain_agent.checkpoint.stores import ATOMIC_CONF, TRIED_CONF
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF

from tests.semantics.topics import Topic
from tests.semantics.warm import Application, applications
from tests.support.kafka_broker import Broker, broker_running
from tests.support.own_jvm import own_jvm, small_session
from tools import jars, sparks


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    scratch = tmp_path_factory.mktemp("spark")
    connector = [] if pyspark.__version__ in sparks.RELEASES else jars.connector()  # it is that of the locked release
    confs = {"spark.jars": ",".join(connector), "spark.sql.streaming.numRecentProgressUpdates": "1000"}
    with own_jvm(scratch):
        session = small_session(scratch, confs)
        yield session
        session.stop()


@pytest.fixture(autouse=True)
def defaults(request: pytest.FixtureRequest) -> None:
    """Forget what the test before set."""
    if "spark" in request.fixturenames:
        assert request.getfixturevalue("spark").conf.get("spark.sql.shuffle.partitions") == "2", "the test before left it changed"
        for conf in (FLUSH_CONF, ATOMIC_CONF, TRIED_CONF, "spark.sql.streaming.stateStore.providerClass"):
            request.getfixturevalue("spark").conf.unset(conf)


@pytest.fixture
def application(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Application]]:
    """Return a function that starts an application on the test's folder, or on another one."""
    with applications(spark, tmp_path / "checkpoints") as begin:
        yield begin


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker_running(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def topic(spark: SparkSession, broker: Broker, request: pytest.FixtureRequest) -> Topic:
    return Topic(spark, broker, re.sub(r"\W", "-", request.node.name))
