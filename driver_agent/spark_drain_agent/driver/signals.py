"""Whether the program ends because a signal told it to: Kubernetes deletes the pod, or somebody presses Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
from types import CodeType, FrameType, TracebackType
from typing import Any

__all__ = ["ends_for_a_signal"]


def ends_for_a_signal() -> bool:
    """Return whether the calling code is, or was left by, the application's handler of SIGTERM or SIGINT."""
    if threading.current_thread() is not threading.main_thread():
        return False  # Python runs handlers in the main thread only
    error = sys.exc_info()[1]
    if isinstance(error, KeyboardInterrupt):
        return True
    handlers = {code for number in (signal.SIGTERM, signal.SIGINT) if (code := _code(signal.getsignal(number))) is not None}
    return _in_stack(handlers, sys._getframe()) or _in_traceback(handlers, error.__traceback__ if error is not None else None)


def _code(handler: Any) -> CodeType | None:
    while hasattr(handler, "func"):  # functools.partial
        handler = handler.func
    found = getattr(handler, "__code__", None) or getattr(getattr(type(handler), "__call__", None), "__code__", None)  # noqa: B004  # its code, not whether it has any
    return found if isinstance(found, CodeType) else None


def _in_stack(handlers: set[CodeType], frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code in handlers:
            return True
        frame = frame.f_back
    return False


def _in_traceback(handlers: set[CodeType], traceback: TracebackType | None) -> bool:
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False
