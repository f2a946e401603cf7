"""Calls into the JVM that a signal handler may have left in their middle."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["afterwards", "leaves_call_open"]


def leaves_call_open(error: BaseException) -> bool:
    """Return whether an exception may have left a call into the JVM in its middle, so that the next one is given the answer to that one.

    What a signal handler raises Py4J makes an error of its own, and begins with a new connection; not so what is no `Exception`.
    """
    return threading.current_thread() is threading.main_thread() and not isinstance(error, Exception)


@contextmanager
def afterwards(call: Callable[[], object]) -> Iterator[None]:
    """Make a call into the JVM behind a block, also where that fails, but where another one may have been left in its middle."""
    try:
        yield
    except BaseException as error:
        if not leaves_call_open(error):
            call()
        raise
    call()
