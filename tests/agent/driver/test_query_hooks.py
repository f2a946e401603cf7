"""Waits for queries, with queries that say what a test wants: no Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager
from spark_drain_agent.drain.identity import Identity
from spark_drain_agent.driver.agent import Agent
from spark_drain_agent.driver.query_hooks import hook_queries
from spark_drain_agent.gate import Phase
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_store import Channel

from tests.agent.driver.streams import in_thread
from tests.agent.warm import HOOKED

_ME = Identity(run_id="run", pod_name="", pod_uid="", spark_version="4.2.0", agent_version="0.1.0")


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Agent:
    """Return the agent that the hooks ask in this test."""
    for holder, names in HOOKED:
        for name in names:
            monkeypatch.setattr(holder, name, vars(holder)[name])
    agent = Agent(cast(SparkInternals, SimpleNamespace()), Channel.in_memory(), _ME)
    hook_queries(lambda: agent)
    return agent


class TimeIsUpError(Exception):
    """What a signal handler raises."""


@pytest.mark.parametrize("raised", [TimeIsUpError, Py4JError])
@pytest.mark.parametrize("wait", ["awaitTermination", "awaitAnyTermination", "processAllAvailable"])
def test_what_a_signal_handler_raises_ends_a_wait_that_a_drain_has_just_made_its_own(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, wait: str, raised: type[Exception]
) -> None:
    """It is no failure of a flush that the drain makes good; py4j puts its own exception in the place of any other in its midst."""

    def interrupted(*_: Any) -> None:
        agent.gate.turn(Phase.HELD)
        raise raised

    for name in ("shields", "was_drained"):
        monkeypatch.setattr(agent.held, name, lambda _: agent.gate.phase is Phase.HELD)
    waits = SimpleNamespace(**{wait: interrupted})
    waiting = StreamingQueryManager(waits) if wait == "awaitAnyTermination" else StreamingQuery(waits)
    with pytest.raises(raised):
        in_thread(getattr(waiting, wait), 5)
