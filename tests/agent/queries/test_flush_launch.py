"""What is said where another version of the application has to finish a drain."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from spark_drain_agent.drain.committed_query import CommittedQuery
from spark_drain_agent.queries.flush_launch import RecoveryNeedsPreviousVersionError, application
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_store import DrainOptions, QueryReport

from tests.agent.checkpoint.test_steps import JOURNAL

COMMAND = "`python -m spark_drain_agent recover 'file:/my checkpoints/orders' --discard-pending`"


@pytest.fixture
def tracked() -> TrackedQuery:
    fake = SimpleNamespace(
        label="orders", location="file:/my checkpoints/orders", internals=None, captured=None, is_version_of=lambda *_: False
    )
    return cast(TrackedQuery, fake)


def test_the_command_that_gives_a_flush_up_can_be_run_as_it_is_written(tracked: TrackedQuery) -> None:
    with pytest.raises(RecoveryNeedsPreviousVersionError) as planned:
        application(tracked, JOURNAL).check_version(JOURNAL)
    assert COMMAND in str(planned.value)
    query = CommittedQuery(tracked, DrainOptions(), "u", replace(QueryReport(id="q"), fingerprint="f"))
    with pytest.raises(RecoveryNeedsPreviousVersionError) as begun:
        query._refuse_another_version(None)
    assert COMMAND in str(begun.value)
    assert str(begun.value).startswith("drain u is past its point of no return")  # who reports it names the query, once
