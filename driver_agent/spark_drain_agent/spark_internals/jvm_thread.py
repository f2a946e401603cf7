"""The thread of the JVM in which the calls of a Python thread are made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.clientserver import ClientServer  # type: ignore[import-untyped]  # py4j ships no types
from pyspark import SparkContext

__all__ = ["in_one_jvm_thread", "pins_threads"]


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
    """Have one thread of the JVM make all calls of the calling thread, for what belongs to a thread: locks, local properties, sessions.

    Otherwise, with ``PYSPARK_PIN_THREAD=false``, Py4J makes each call by any connection that is free (`py4j.java_gateway.GatewayClient`),
    and each of them has a thread in the JVM.
    """
    gateway = context._gateway
    if gateway is None or pins_threads(context) or _kept.connection is not None:
        yield
        return
    client = gateway._gateway_client
    _let_connections_be_kept(client)
    _kept.connection, _kept.is_idle = client._get_connection(), True
    try:
        yield
    finally:
        connection, _kept.connection = _kept.connection, None
        if _kept.is_idle:  # it was closed otherwise, or is in the middle of a call that was interrupted
            client._give_back_connection(connection)


def _let_connections_be_kept(client: Any) -> None:
    with _installing:
        if "_give_back_connection" in vars(client):
            return
        take, give_back = client._get_connection, client._give_back_connection

        def take_kept() -> Any:
            if _kept.connection is None or not _kept.is_idle:
                return take()
            _kept.is_idle = False
            return _kept.connection

        def keep(connection: Any) -> None:
            if connection is _kept.connection:
                _kept.is_idle = True
            else:
                give_back(connection)

        client._get_connection, client._give_back_connection = take_kept, keep
