"""One cluster, and one run of the job on it that all tests look at."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import cluster as where
from demo.cluster import Cluster
from demo.job import FlightsJob, Settings
from tests.e2e.flights_run import FLIGHTS, Run, tell


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """SPARK_DRAIN_TEST_KUBECONFIG names a cluster that has everything; else devcluster starts its own, and ends it if it was down."""
    given = os.environ.get("SPARK_DRAIN_TEST_KUBECONFIG")
    if given:
        found = where.given(Path(given), "spark-drain-operator:dev", "spark-drain-example:dev")
        found.install_operator()
        yield found
        return
    was_up = where.is_up()
    found = where.own()
    try:
        found.install_operator()
        yield found
    finally:
        if not was_up:
            where.down()


@pytest.fixture(scope="session")
def run(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    settings = Settings(image=cluster.example_image, conf={}, prefix="e2e-", count=FLIGHTS, per_second=600, max_offsets=500)
    job = FlightsJob(cluster.kubectl(where.TEST_NAMESPACE), settings, tmp_path_factory.mktemp("logs"))
    job.clear()
    job.prepare()
    feed = job.follow()
    story = Run(job, feed)
    try:
        tell(story)
        yield story
    finally:
        feed.close()
        job.clear()
