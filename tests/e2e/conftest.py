"""The cluster that all end-to-end tests share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import cluster as where
from demo.cluster import Cluster


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
