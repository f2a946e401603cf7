"""One Spark session with the agent in this process, for many drains: a new version of a query is a new `start` in the same application."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import JStreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager
from pyspark.sql.streaming.readwriter import DataStreamWriter
from spark_drain_agent.driver import attach, pyspark_hooks
from spark_drain_agent.driver.agent import Agent
from spark_drain_agent.gate import Phase
from spark_drain_agent.queries.registry import QueryRegistry

from tests.agent.harness import Drains, eventually
from tests.support.own_jvm import own_jvm, small_session

__all__ = ["Warm", "warm_session"]


class Warm:
    """A session, its agent and its drains.

    Parameters
    ----------
    make
        Makes the session.
    drains
        The store.
    """

    def __init__(self, make: Callable[[], SparkSession], drains: Drains) -> None:
        self._make = make
        self.session = make()
        self.drains = drains

    @property
    def agent(self) -> Agent:
        """The agent of this process."""
        found = attach.current_agent()
        assert found is not None
        return found

    def drain(self, mode: str = "Drain", **options: str) -> dict[str, Any]:
        """Drain all queries, and let the application go on; returns the drain as it was reported."""
        with self.requested(mode, **options) as drain_id:
            return self.drains.reaches(drain_id, "Drained")

    def refused(self, mode: str = "Drain", **options: str) -> tuple[str, str]:
        """Ask for a drain that is rejected; returns reason and message."""
        with self.requested(mode, **options) as drain_id:
            drain = self.drains.reaches(drain_id, "Rejected")
            return drain["reason"], drain["message"]

    @contextmanager
    def requested(self, mode: str = "Drain", **options: str) -> Iterator[str]:
        """Request a drain while main waits for its queries; at the end the notification is removed."""
        with self.agent.gate.user_waits():
            drain_id = self.drains.write(mode, **options)
            try:
                yield drain_id
            finally:
                self.drains.clean_up(everything=True)
        self.let_go()

    def let_go(self) -> None:
        """Remove every notification, and wait until the application goes on."""
        self.drains.clean_up(everything=True)
        eventually(lambda: self.agent.gate.phase is Phase.OPEN and self.agent._drain is None, "the drain to let go")

    def again(self) -> None:
        """Make another session, as an application may after it has stopped one."""
        self.session = self._make()

    def forget(self) -> None:
        """Stop what runs and forget it, so that the next test finds an application without queries."""
        for query in self.session.streams.active:
            query.stop()
        for execution in self.agent.internals._executions():  # those that Spark does not list: their starts were interrupted
            execution.stop()
        self.session.streams.resetTerminated()
        self.agent.registry = QueryRegistry(self.agent.internals, self.agent.gate.starts_in_flight)


HOOKED = (
    (SparkSession, ("__init__", "stop")),
    (SparkSession.Builder, ("getOrCreate", "create")),
    (SparkContext, ("stop",)),
    (DataStreamWriter, ("start", "toTable")),
    (StreamingQuery, ("awaitTermination", "isActive", "stop", "processAllAvailable", "exception")),
    (StreamingQueryManager, ("awaitAnyTermination", "active", "get", "resetTerminated")),
    (JStreamingQueryListener, ("onQueryStarted",)),
)


@contextmanager
def warm_session(base: Path, **confs: str) -> Iterator[Warm]:
    """Make a session in this process; at the end it is stopped, and PySpark is as it was before."""
    drains = Drains(base / "store")
    with pytest.MonkeyPatch.context() as patch, own_jvm(base):
        for holder, names in HOOKED:
            for name in names:
                patch.setattr(holder, name, vars(holder)[name])
        patch.setattr(pyspark_hooks, "_installed", False)
        patch.setattr(attach, "_agent", None)
        warm = Warm(partial(small_session, base, {"spark.sparkdrain.store": drains.location, **confs}), drains)
        try:
            attach.attach(warm.session)
            yield warm
        finally:
            warm.session.stop()
            warm.agent.close()
