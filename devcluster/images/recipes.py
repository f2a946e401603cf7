"""The images that a cluster for this project needs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from devcluster import gobuild
from devcluster.images import downloads
from devcluster.paths import PACKAGE, REPOSITORY

OPERATOR = "spark-drain-operator:dev"
EXAMPLE = "spark-drain-example:dev"
EXAMPLE_S3 = "spark-drain-example-s3:dev"
SPARK = "devcluster-spark:dev"
KAFKA = "devcluster-kafka:4.1.0"
S3 = "devcluster-s3:1.8.0"
KAFKA_POM = PACKAGE / "images" / "kafka" / "pom.xml"
# The name in the chart of kubeflow's operator.
SPARK_OPERATOR = "ghcr.io/kubeflow/spark-operator/controller:2.5.2"

PYTHON = ("python3", "python3-venv", "ca-certificates")
_JAVA = ("openjdk-17-jre-headless", "tini", "procps")
# The 4.2.0 connector; the token provider is not published for 4.2.0, and 4.0.0 is what works with it.
_CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)


@dataclass(frozen=True)
class Recipe:
    """How an image is built.

    Parameters
    ----------
    name : str
        What manifests call it.
    dockerfile : Path
        Its Dockerfile, with ``ARG BASE_IMAGE``.
    context : Path
        The build context.
    debian : tuple of str
        Packages of the base image, where it is made of Debian packages.
    base : str
        Or else the name of another recipe's image.
    target : str
        Stage to stop at; the last one by default.
    contexts : dict of str to function
        Folders that replace the Dockerfile's empty stages of these names.
    """

    name: str
    dockerfile: Path
    context: Path
    debian: tuple[str, ...] = ()
    base: str = ""
    target: str = ""
    contexts: dict[str, Callable[[], Path]] = field(default_factory=dict)


def _example_wheels() -> Path:
    return downloads.wheelhouse(REPOSITORY / "examples" / "requirements.lock")


def connector_jars() -> Path:
    """Return a folder with Spark's Kafka connector and what it needs."""
    return downloads.jars(_CONNECTOR)


def s3a_jars() -> Path:
    """Return a folder with Hadoop's connector for S3 and what it needs beside the jars of pyspark."""
    return downloads.resolved_jars(REPOSITORY / "examples" / "s3" / "pom.xml")


def spark_operator_source() -> Path:
    """Return the source folder of kubeflow's operator, with its chart and entry point."""
    return gobuild.module_dir(gobuild.SPARK_OPERATOR, "github.com/kubeflow/spark-operator/v2")


_SPARK_CONTEXTS = {"wheelhouse": _example_wheels, "jars": connector_jars}

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            OPERATOR,
            REPOSITORY / "operator" / "Dockerfile",
            REPOSITORY,
            debian=PYTHON,
            contexts={"wheelhouse": lambda: downloads.wheelhouse(REPOSITORY / "operator" / "requirements.lock")},
        ),
        Recipe(
            EXAMPLE,
            REPOSITORY / "examples" / "Dockerfile",
            REPOSITORY,
            debian=PYTHON + _JAVA,
            contexts=_SPARK_CONTEXTS,
        ),
        Recipe(
            EXAMPLE_S3,
            REPOSITORY / "examples" / "s3" / "Dockerfile",
            REPOSITORY / "examples" / "s3",
            base=EXAMPLE,
            contexts={"jars": s3a_jars},
        ),
        Recipe(
            SPARK,
            REPOSITORY / "examples" / "Dockerfile",
            REPOSITORY,
            debian=PYTHON + _JAVA,
            target="spark",
            contexts=_SPARK_CONTEXTS,
        ),
        Recipe(
            KAFKA,
            PACKAGE / "images" / "kafka" / "Dockerfile",
            PACKAGE / "images" / "kafka",
            debian=PYTHON + _JAVA,
            contexts={"jars": lambda: downloads.resolved_jars(KAFKA_POM)},
        ),
        Recipe(
            S3,
            PACKAGE / "images" / "s3" / "Dockerfile",
            PACKAGE / "images" / "s3",
            debian=PYTHON,
            contexts={"program": lambda: gobuild.build(gobuild.S3)},
        ),
        Recipe(
            SPARK_OPERATOR,
            PACKAGE / "images" / "spark-operator" / "Dockerfile",
            PACKAGE / "images" / "spark-operator",
            base=SPARK,
            contexts={
                "program": lambda: gobuild.build(gobuild.SPARK_OPERATOR),
                "source": spark_operator_source,
            },
        ),
    )
}
