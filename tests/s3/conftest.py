"""An S3 server behind a proxy, one session and one process that restarts drivers, which have their checkpoints there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF
from spark_drain_agent.spark_internals.writer import VERSION_CONF

from tests.ledger.harness import Restarter
from tests.s3.drivers import spark_on
from tests.s3.moments import MANAGER_CONF, Recording, Setting, record
from tests.semantics.warm import Application, applications
from tests.support.own_jvm import own_jvm, small_session
from tests.support.s3_server import BUCKET, S3Server, confs, direct, s3_running
from tools import jars


@pytest.fixture(scope="package")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_running(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="package")
def spark(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    scratch = tmp_path_factory.mktemp("spark")
    connector = {"spark.jars": ",".join(jars.s3a()), "spark.sql.streaming.numRecentProgressUpdates": "1000"}
    patience = {"spark.sparkdrain.leaseSeconds": "1"}  # what waits for a driver that is gone is not to wait for long
    with own_jvm(scratch):
        session = small_session(scratch, {**connector, **patience, **confs(s3.proxy.port), **direct(s3.port)})
        yield session
        session.stop()


def _restarter(s3: S3Server, folder: Path) -> Iterator[Restarter]:
    restarter = Restarter(folder / "log", spark_on(s3))
    yield restarter
    restarter.close()


@pytest.fixture(scope="package")
def restarter(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarter]:
    yield from _restarter(s3, tmp_path_factory.mktemp("restarter"))


@pytest.fixture
def another(s3: S3Server, tmp_path: Path) -> Iterator[Restarter]:
    """Return a second process that restarts drivers."""
    (tmp_path / "another").mkdir()
    yield from _restarter(s3, tmp_path / "another")


@pytest.fixture(autouse=True)
def defaults(request: pytest.FixtureRequest) -> None:
    """Forget what the test before set."""
    if "spark" in request.fixturenames:
        request.getfixturevalue("s3").proxy.fault = None
        for conf in (FLUSH_CONF, MANAGER_CONF, VERSION_CONF, "spark.sql.streaming.stateStore.providerClass"):
            request.getfixturevalue("spark").conf.unset(conf)


@pytest.fixture(scope="package")
def recorded(spark: SparkSession, s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Setting], Recording]:
    """Return a function that drains in a setting, once, and returns all the moments of that."""

    @cache
    def drained(setting: Setting) -> Recording:
        return record(setting, spark, s3, tmp_path_factory.mktemp("recorded") / "drain")

    return drained


@pytest.fixture
def bucket() -> str:
    """URI of a folder for one test's checkpoints."""
    return f"s3a://{BUCKET}/{uuid4()}"


@pytest.fixture
def application(spark: SparkSession, bucket: str) -> Iterator[Callable[[], Application]]:
    """Return a function that starts an application whose checkpoints are in the test's folder."""
    with applications(spark, bucket) as begin:
        yield begin


@pytest.fixture
def folder(s3: S3Server, bucket: str) -> Path:
    """The objects of the test's folder, as files."""
    return s3.folder / bucket.rpartition("/")[2]
