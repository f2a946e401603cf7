"""A stand-in for Google Cloud Storage behind a proxy, and one session that has its checkpoints there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF

from tests.semantics.warm import Application, applications
from tests.support.gcs_server import BUCKET, confs, gcs_running
from tests.support.own_jvm import own_jvm, small_session
from tests.support.s3_proxy import S3Proxy
from tools import jars


@pytest.fixture(scope="package")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Proxy]:
    with gcs_running(tmp_path_factory.mktemp("gcs")) as proxy:
        yield proxy


@pytest.fixture(scope="package")
def spark(gcs: S3Proxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    scratch = tmp_path_factory.mktemp("spark")
    connector = {"spark.jars": ",".join(jars.gcs()), "spark.sql.streaming.numRecentProgressUpdates": "1000"}
    with own_jvm(scratch):
        session = small_session(scratch, {**connector, **confs(gcs.port)})
        yield session
        session.stop()


@pytest.fixture(autouse=True)
def defaults(gcs: S3Proxy, spark: SparkSession) -> None:
    """Forget what the test before set."""
    gcs.fault = None
    for conf in (FLUSH_CONF, "spark.sql.streaming.stateStore.providerClass"):
        spark.conf.unset(conf)


@pytest.fixture
def bucket() -> str:
    """URI of a folder for one test's checkpoints."""
    return f"gs://{BUCKET}/{uuid4()}"


@pytest.fixture
def application(spark: SparkSession, bucket: str) -> Iterator[Callable[[], Application]]:
    """Return a function that starts an application whose checkpoints are in the test's folder."""
    with applications(spark, bucket) as begin:
        yield begin
