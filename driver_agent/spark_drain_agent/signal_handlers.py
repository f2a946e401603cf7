"""Handlers of signals that the application has set: the code that one interrupts, and what it raises into that.

Python calls a handler with the frame that it interrupts, which no other caller of the same function does: one that is the program's way to
end as well is called by main without. Which handlers are set matters as little: one may set another in its own place before it raises.
"""

from __future__ import annotations

import inspect
import signal
from collections.abc import Collection
from types import FrameType
from typing import Any

__all__ = ["in_handler", "raised_by_handler"]

_ALL = signal.valid_signals()


def in_handler(frame: FrameType | None, numbers: Collection[int] = _ALL) -> bool:
    """Return whether a handler, called for one of some signals, or what it has called, is executed in a frame."""
    while frame is not None:
        if _handles(frame, numbers):
            return True
        frame = frame.f_back
    return False


def raised_by_handler(error: BaseException | None, numbers: Collection[int] = _ALL) -> bool:
    """Return whether an exception has left a handler that was called for one of some signals."""
    traceback = None if error is None else error.__traceback__
    while traceback is not None:
        if _handles(traceback.tb_frame, numbers):
            return True
        traceback = traceback.tb_next
    return False


def _handles(frame: FrameType, numbers: Collection[int]) -> bool:
    arguments = _arguments(frame) if frame.f_back is not None else ()
    called_for = any(isinstance(argument, int) and argument in numbers for argument in arguments)
    return called_for and any(argument is frame.f_back for argument in arguments)


def _arguments(frame: FrameType) -> tuple[Any, ...]:
    names, rest, _, values = inspect.getargvalues(frame)
    return (*map(values.get, names), *(values.get(rest, ()) if rest else ()))
