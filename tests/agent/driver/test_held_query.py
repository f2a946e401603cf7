"""The stand-in for a query that a drain keeps from starting."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.agent_thread import as_callback
from spark_drain_agent.driver.held_query import HeldQuery, HeldQueryError
from spark_drain_agent.gate import Gate, Phase


@pytest.fixture
def gate() -> Gate:
    gate = Gate()
    gate.turn(Phase.HELD)
    return gate


def test_it_is_a_query_with_the_drained_querys_id(gate: Gate) -> None:
    again, new = HeldQuery("orders", gate, "the id in the checkpoint"), HeldQuery("", gate)
    assert isinstance(again, StreamingQuery)
    assert again == again  # noqa: PLR0124  # as a list of queries compares them
    assert again in [new, again]
    assert again != new
    assert (again.id, again.name, again.isActive) == ("the id in the checkpoint", "orders", True)
    assert not again.recentProgress
    assert again.runId != again.id
    assert new.id
    assert str(again) == "<query orders held by spark-drain>"


def test_waiting_for_it_ends_with_the_drain(gate: Gate) -> None:
    query = HeldQuery("orders", gate)
    assert query.awaitTermination(0.05) is False
    threading.Timer(0.1, gate.turn, args=(Phase.OPEN,)).start()
    assert query.awaitTermination() is None
    assert not query.isActive
    assert query.awaitTermination(1) is True


@pytest.mark.parametrize("wait", ["awaitTermination", "processAllAvailable"])
def test_a_function_that_the_drain_may_wait_for_does_not_wait_for_it(gate: Gate, wait: str) -> None:
    query = HeldQuery("orders", gate)
    with as_callback():
        assert query.awaitTermination(0.05) is False
        with pytest.raises(HeldQueryError, match="query 'orders' was not started"):
            getattr(query, wait)()
        gate.turn(Phase.OPEN)
        getattr(query, wait)()
