"""The sockets over which PySpark talks with the JVM, one per thread, where the application forks."""

from __future__ import annotations

import os
from typing import Any

from py4j import clientserver, java_gateway  # type: ignore[import-untyped]  # py4j ships no types

__all__ = ["keep_from_children"]


def keep_from_children() -> None:
    """Let a process that is forked from this one forget the connections of other threads without ending them here.

    Python forgets those threads before it calls any handler of the fork in the child, and py4j shuts the connection of a forgotten thread
    down, for all who share it. Here a call in flight would then fail, and what a thread has locked in the JVM would stay locked for ever.
    """
    process, shut_down = os.getpid(), java_gateway.quiet_shutdown

    def quiet_shutdown(connection: Any) -> None:
        if os.getpid() == process:
            shut_down(connection)

    def begin_anew() -> None:
        nonlocal process
        process = os.getpid()  # what this child opens itself is its own

    for module in (clientserver, java_gateway):
        module.quiet_shutdown = quiet_shutdown
    os.register_at_fork(after_in_child=begin_anew)
