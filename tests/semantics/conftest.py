"""One session for all tests of this folder; its JVM ends with the last of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from spark_drain_agent.steps.flush_running import FLUSH_CONF

from tests.semantics.warm import Application
from tests.workshop.repository import ROOT
from tools import jars, spark_java


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    scratch = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("JDK_JAVA_OPTIONS", spark_java.options())
        patch.setenv("SPARK_LOCAL_DIRS", str(scratch))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))  # workers import the tests' functions
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.jars", ",".join(jars.connector()))
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
            .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        try:
            yield session
        finally:
            _end(session)


def _end(session: SparkSession) -> None:
    """Stop Spark and its JVM, which PySpark would keep until Python ends: other suites need the memory."""
    gateway = SparkContext._gateway
    assert gateway is not None
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)
    SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture(autouse=True)
def defaults(request: pytest.FixtureRequest) -> None:
    """Forget what the test before set."""
    if "spark" in request.fixturenames:
        for conf in (FLUSH_CONF, "spark.sql.streaming.stateStore.providerClass"):
            request.getfixturevalue("spark").conf.unset(conf)


@pytest.fixture
def application(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Application]]:
    """Return a function that starts an application on the test's folder, or on another one."""
    begun: list[Application] = []

    def begin(base: Path | str = tmp_path / "checkpoints") -> Application:
        begun.append(Application(spark, base))
        return begun[-1]

    yield begin
    for each in begun:
        each.close()
