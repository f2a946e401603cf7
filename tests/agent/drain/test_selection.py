"""What a drain says of the queries that it leaves as they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from spark_drain_agent.drain.host import DrainHost
from spark_drain_agent.drain.selection import _left_alone
from spark_drain_agent.queries.standing import MENTIONED
from spark_drain_agent.queries.tracked import TrackedQuery


@pytest.mark.parametrize(("count", "told"), [(MENTIONED - 1, False), (MENTIONED, True)])
def test_that_there_may_be_more_than_is_remembered_is_said(count: int, told: bool) -> None:
    """Some were stopped by the application, others by an earlier drain: together they are the last ones."""
    queries = [cast(TrackedQuery, SimpleNamespace(label=f"query '{number}'")) for number in range(count)]
    held = SimpleNamespace(
        kept_open=lambda _: False,
        ended=lambda query: queries.index(query) % 2 == 0,
        made_good=lambda query: queries.index(query) % 2 == 0,
    )
    said = "; ".join(_left_alone(cast(DrainHost, SimpleNamespace(held=held)), queries, [], [], count))
    assert ("there may have been others before" in said) is told
    assert ("the last 100 are drained" in said) is told
    assert "the application had stopped query '1', query '3'" in said
    assert "an earlier drain has ended query '0', query '2'" in said
