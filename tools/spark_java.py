"""How the tests start Java for Spark: hundreds of short lives, which would all spend their seconds on loading and compiling classes."""

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pyspark

from devcluster.locks import only_one
from tools import java_home

__all__ = ["CALM_CONFS", "QUICK", "QUICK_CONFS", "environment", "is_archived", "make_archive", "submit_arguments"]

QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Djdk.lang.Process.launchMechanism=VFORK"
"""Good code is not worth its compilation in a JVM that lives for seconds, but the room for it is Java's usual one: a JVM that many tests
share fills the small one, and compiles again and again. And Hadoop runs chmod for each file that it writes, which Java would do by way of
a program of its own."""

QUICK_CONFS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""The same of code that Spark would generate for each query of a few rows. On a cluster Spark is as it is by itself."""

CALM_CONFS = {"spark.sql.streaming.pollingDelay": "100ms"}
"""A query that waits for data looks for it a hundred times a second, for which a few of them take all of a small machine."""

_TRAINING = Path(__file__).with_name("spark_training.py")
_ARCHIVE = Path(sys.prefix) / f"spark-{pyspark.__version__}-classes.jsa"


def is_archived() -> bool:
    """Say whether `make_archive` would have nothing to do."""
    return _ARCHIVE.is_file()


def make_archive() -> None:
    """Let Java keep the classes that a small streaming query needs in the form in which it maps them: a start takes half the time.

    Nothing depends on it: without the archive, or with one of another Java, classes are loaded as always.
    """
    with only_one(_ARCHIVE):
        if not is_archived():
            part = _ARCHIVE.with_suffix(".part")
            environment = {"JDK_JAVA_OPTIONS": f"{QUICK} -XX:ArchiveClassesAtExit={part}", "SPARK_LOCAL_IP": "127.0.0.1"}
            subprocess.run(
                [sys.executable, str(_TRAINING)],
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=300,
            )
            if part.is_file():
                part.rename(_ARCHIVE)


def environment(*, installed: bool = True) -> dict[str, str]:
    """Return what makes a process start Spark with a quick Java, for Spark as it is installed here or for another one."""
    return {"JDK_JAVA_OPTIONS": _options() if installed else QUICK, **java_home.environment()}


@cache
def _options() -> str:
    return f"{QUICK} -XX:SharedArchiveFile={_ARCHIVE} -Xlog:cds=off -Xlog:cds+dynamic=off" if is_archived() else QUICK


def submit_arguments(jars: Sequence[str] = ()) -> str:
    """Return the value of ``PYSPARK_SUBMIT_ARGS`` for quick short lives, with further jars for Spark."""
    confs = [f"--conf {name}={value}" for name, value in (QUICK_CONFS | CALM_CONFS).items()]
    return " ".join([*confs, *([f"--jars {','.join(jars)}"] if jars else []), "pyspark-shell"])
