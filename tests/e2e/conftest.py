"""The cluster that all end-to-end tests share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import cluster as where
from demo.cluster import Cluster
from demo.stores import S3, SHARED_FOLDER, Store
from devcluster.images.recipes import OPERATOR
from tools.prerequisites import OTHER_CLUSTER


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    """SPARK_DRAIN_TEST_KUBECONFIG names a cluster that has everything; else devcluster starts its own, and ends it if it was down."""
    ours = not os.environ.get(OTHER_CLUSTER) and not where.is_up()
    found = _found(SHARED_FOLDER)
    try:
        found.install_operator()
        yield found
    finally:
        if ours:
            where.down()


@pytest.fixture(scope="package")
def cluster_with_s3(cluster: Cluster) -> Cluster:
    """Return the same cluster with an S3 server, which one of SPARK_DRAIN_TEST_KUBECONFIG has to have."""
    return _found(S3)


def _found(store: Store) -> Cluster:
    given = os.environ.get(OTHER_CLUSTER)
    return where.given(Path(given), OPERATOR, store.image) if given else where.own(store=store)
