"""The thread of the JVM in which the calls of a Python thread are made.

With ``PYSPARK_PIN_THREAD=false`` each connection of Py4J's has one, and a call is made by any connection that is free, the one used
last first (`py4j.java_gateway.GatewayClient`). A program of one thread has the same thread of the JVM all along, with the local properties
that it has set there; so the agent's threads have connections of their own.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.clientserver import ClientServer  # type: ignore[import-untyped]  # py4j ships no types
from pyspark import SparkContext

from spark_drain_agent.agent_thread import is_agents_thread

__all__ = ["in_one_jvm_thread", "keep_connections_apart", "local_property", "pins_threads", "set_local_property"]


class _Kept(threading.local):
    """The connection that the calling thread keeps, which is busy in the middle of a call."""

    connection: Any = None
    is_idle = False


_kept = _Kept()
_installing = threading.Lock()


def pins_threads(context: SparkContext) -> bool:
    """Return whether each Python thread has a JVM thread of its own, which a function called by Spark runs in (PYSPARK_PIN_THREAD)."""
    return isinstance(context._gateway, ClientServer)


@contextmanager
def in_one_jvm_thread(context: SparkContext) -> Iterator[None]:
    """Have one thread of the JVM make all calls of the calling thread, for what belongs to a thread: locks, local properties, sessions."""
    gateway = context._gateway
    if gateway is None or pins_threads(context) or _kept.connection is not None:
        yield
        return
    keep_connections_apart(context)
    client = gateway._gateway_client
    _kept.connection, _kept.is_idle = client._get_connection(), True
    try:
        yield
    finally:
        connection, _kept.connection = _kept.connection, None
        if _kept.is_idle:  # it was closed otherwise, or is in the middle of a call that was interrupted
            client._give_back_connection(connection)


def keep_connections_apart(context: SparkContext) -> None:
    """Give the agent's threads connections of their own, and let any thread keep one; once per gateway."""
    gateway = context._gateway
    if gateway is None or pins_threads(context):
        return
    client = gateway._gateway_client
    with _installing:
        if "_give_back_connection" in vars(client):
            return
        take, give_back, create = client._get_connection, client._give_back_connection, client._create_connection
        agents: deque[Any] = deque()

        def take_own() -> Any:
            if _kept.connection is not None and _kept.is_idle:
                _kept.is_idle = False
                return _kept.connection
            if not is_agents_thread():
                return take()
            try:
                return agents.pop()
            except IndexError:
                return create()

        def keep(connection: Any) -> None:
            if connection is _kept.connection:
                _kept.is_idle = True
            elif is_agents_thread():
                agents.append(connection)
            else:
                give_back(connection)

        client._get_connection, client._give_back_connection = take_own, keep


def local_property(context: SparkContext, name: str) -> str | None:
    """Return a local property of the calling thread; None where it has none, or another thread has stopped the context."""
    java_context: Any = context._jsc  # PySpark forgets it as it stops
    found: str | None = None if java_context is None else java_context.getLocalProperty(name)
    return found


def set_local_property(context: SparkContext, name: str, value: str | None) -> None:
    """Give the calling thread a local property, or take it away by None; nothing where another thread has stopped the context."""
    java_context: Any = context._jsc
    if java_context is not None:
        java_context.setLocalProperty(name, value)
