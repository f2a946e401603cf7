"""The jars that tests start servers with, or give to Spark: fetched once per machine."""

from pathlib import Path

from devcluster.images import downloads
from devcluster.images.recipes import KAFKA_POM, connector_jars, s3a_jars

__all__ = ["connector", "fetch", "gcs", "hdfs", "kafka", "s3a"]

_HDFS_POM = Path(__file__).parent / "hdfs" / "pom.xml"
_GCS_POM = Path(__file__).parent / "gcs" / "pom.xml"


def _in(folder: Path) -> list[str]:
    return [str(jar) for jar in sorted(folder.glob("*.jar"))]


def connector() -> list[str]:
    """Return Spark's Kafka connector and what it needs."""
    return _in(connector_jars())


def kafka() -> list[str]:
    """Return a Kafka broker."""
    return _in(downloads.resolved_jars(KAFKA_POM))


def hdfs() -> list[str]:
    """Return an HDFS to be run beside the jars of pyspark."""
    return _in(downloads.resolved_jars(_HDFS_POM))


def s3a() -> list[str]:
    """Return Hadoop's connector for S3 and what it needs beside the jars of pyspark."""
    return _in(s3a_jars())


def gcs() -> list[str]:
    """Return Google's connector for its Cloud Storage, in one jar of 37 MB."""
    return _in(downloads.resolved_jars(_GCS_POM))


def fetch() -> None:
    """Fetch what is missing of all that `make test` needs."""
    for jars in (connector, kafka, hdfs, s3a, gcs):
        jars()
