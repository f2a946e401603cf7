"""A JVM for the Spark sessions that tests make in their own process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.workshop.repository import ROOT
from tools import spark_java

__all__ = ["forget_answers", "own_jvm", "session_confs", "small_session"]

_SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    **spark_java.CALM_CONFS,
    **spark_java.QUICK_CONFS,
    "spark.sparkdrain.startSeconds": "3",  # threads of tests do not await what they start
}


def small_session(scratch: Path, confs: Mapping[str, str]) -> SparkSession:
    """Make a quiet session, or return the one that there is."""
    settings = {**_SETTINGS, "spark.sql.warehouse.dir": str(scratch / "warehouse"), **confs}
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@contextmanager
def session_confs(session: SparkSession, confs: Mapping[str, str]) -> Iterator[None]:
    """Set confs for a block. To unset them would not do: a session forgets by that what it was made with, its 2 partitions among them."""
    before = {conf: session.conf.get(conf, None) for conf in confs}
    for conf, value in confs.items():
        session.conf.set(conf, value)
    try:
        yield
    finally:
        for conf, earlier in before.items():
            if earlier is None:
                session.conf.unset(conf)
            else:
                session.conf.set(conf, earlier)


def forget_answers() -> None:
    """Close this thread's connection to the JVM, if it has one; the next call opens another.

    A call that was broken off, as a timeout does it, leaves its answer in the connection: it would be taken for that of the next call.
    """
    gateway = SparkContext._gateway
    connection = gateway._gateway_client.get_thread_connection() if gateway is not None else None
    if connection is not None:
        connection.close()


@contextmanager
def own_jvm(scratch: Path) -> Iterator[None]:
    """Have the block's first Spark session start a JVM, and end it with the block.

    PySpark would keep it until Python ends: other suites need the memory, and another session may need other jars.
    """
    assert SparkContext._gateway is None, "there is a JVM already"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        for name, value in spark_java.environment().items():
            patch.setenv(name, value)
        patch.setenv("SPARK_LOCAL_DIRS", str(scratch))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))  # workers import the tests' functions
        try:
            yield
        finally:
            gateway = SparkContext._gateway
            if gateway is not None:
                gateway.shutdown()
                gateway.proc.stdin.close()
                gateway.proc.wait(30)
                SparkContext._gateway = SparkContext._jvm = None
