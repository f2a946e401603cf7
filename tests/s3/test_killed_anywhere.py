"""A drain of a checkpoint in S3 that is killed anywhere; then its application starts again: with the request, without it, by plain Spark.

Each time every event is counted once, or the start is refused by name; archives are whole, and what the crash has left is removed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from tests.s3.moments import MANAGERS, Recording, Setting, left_behind
from tests.s3.restarts import WAYS
from tests.support.s3_server import ONE_BY_ONE, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(7200)]

LOG = logging.getLogger("matrix")

Recorded = Callable[[Setting], Recording]

SETTINGS = [
    Setting(flush, policy, manager) for manager in MANAGERS for policy in ("Reseed", "Continue", "Keep") for flush in ("Auto", "WorkCopy")
]
SETTINGS += [Setting(flush, policy, bucket=ONE_BY_ONE) for policy in ("Reseed", "Continue") for flush in ("Auto", "WorkCopy")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_killed_anywhere(setting: Setting, way: str, recorded: Recorded, s3: S3Server, spark: SparkSession) -> None:
    recording = recorded(setting)
    failures: dict[str, str] = {}
    for moment in recording.moments:
        try:
            WAYS[way](left_behind(recording, moment, s3, spark), spark)
            LOG.info("%s, killed at %s, %s: exact", setting, moment.name, way)
        except Exception as error:
            LOG.exception("%s, killed at %s, %s", setting, moment.name, way)
            failures[moment.name] = f"{type(error).__name__}: {error}"[:2000]
    assert not failures
    assert len(recording.moments) > 15
