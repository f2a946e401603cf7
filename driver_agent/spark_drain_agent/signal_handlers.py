"""Handlers of signals that the application has set: the code that one interrupts, and what it raises into that.

Python calls a handler with the frame that it interrupts, which no other caller of the same function does: one that is the program's way to
end as well is called by main without. Which handlers are set matters as little: one may set another in its own place before it raises.
"""

from __future__ import annotations

import inspect
from types import FrameType

__all__ = ["in_handler", "raised_by_handler"]


def in_handler(frame: FrameType | None) -> bool:
    """Return whether a handler, or what it has called, is executed in a frame."""
    while frame is not None:
        if _handles(frame):
            return True
        frame = frame.f_back
    return False


def raised_by_handler(error: BaseException | None) -> bool:
    """Return whether an exception has left a handler."""
    traceback = None if error is None else error.__traceback__
    while traceback is not None:
        if _handles(traceback.tb_frame):
            return True
        traceback = traceback.tb_next
    return False


def _handles(frame: FrameType) -> bool:
    interrupted = frame.f_back
    if interrupted is None:
        return False
    names, rest, _, values = inspect.getargvalues(frame)
    arguments = [values.get(name) for name in names]
    return any(argument is interrupted for argument in (*arguments, *(values.get(rest, ()) if rest else ())))
