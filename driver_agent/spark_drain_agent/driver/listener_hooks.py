"""PySpark's call of the application's listeners when a query starts, where the agent starts one later than the application has."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.listener import JStreamingQueryListener, QueryStartedEvent

from spark_drain_agent.agent_thread import as_listener
from spark_drain_agent.driver.agent import Agent
from spark_drain_agent.milestones import LOG
from spark_drain_agent.spark_internals.at_start import StartListener
from spark_drain_agent.spark_internals.late_start import starts_late

__all__ = ["hook_listeners"]

_PATIENCE_SECONDS = 10.0
"""How long the query waits for a listener, which may want what the application holds while it awaits the query."""


def hook_listeners(current: Callable[[], Agent | None]) -> None:
    """Hook the class by which Spark calls a listener.

    Parameters
    ----------
    current
        Returns the agent, or None while there is none.
    """
    tell = JStreamingQueryListener.onQueryStarted

    @functools.wraps(tell)
    def hooked(self: JStreamingQueryListener, jevent: Any) -> None:
        agent = current()
        if agent is None or isinstance(self.pylistener, StartListener) or not starts_late(agent.internals.context):
            tell(self, jevent)
            return
        try:
            _call_beside(functools.partial(self.pylistener.onQueryStarted, QueryStartedEvent.fromJObject(jevent)))
        finally:
            agent.internals.take_interrupt()

    JStreamingQueryListener.onQueryStarted = hooked  # type: ignore[method-assign]


def _call_beside(call: Callable[[], None]) -> None:
    """Make a call in a thread of its own, and wait for it only so long; what it raises then is raised here, and logged later."""
    over, errors, left = threading.Event(), list[BaseException](), threading.Event()

    def work() -> None:
        try:
            with as_listener():
                call()
        except BaseException as error:
            errors.append(error)
            if left.is_set():
                LOG.exception("a listener's onQueryStarted has failed")
        finally:
            over.set()

    try:
        threading.Thread(target=work, name="spark-drain-listener", daemon=True).start()
    except RuntimeError:  # the system has no more threads now
        work()
    if not over.wait(_PATIENCE_SECONDS):
        left.set()
        LOG.warning(
            "a listener's onQueryStarted has not returned for %.0f s: the query, which a drain had put off, goes on", _PATIENCE_SECONDS
        )
    elif errors:
        raise errors[0]
