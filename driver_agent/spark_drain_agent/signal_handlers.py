"""Handlers of signals that the application has set: the code that one interrupts, and what it raises into that.

Python calls a handler with the frame that it interrupts, which no other caller of the same function does: one that is the program's way to
end as well is called by main without. Nor does it matter which handlers are set: one may set another in its own place before it raises.
"""

from __future__ import annotations

import inspect
import signal
import traceback
from collections.abc import Collection
from types import CodeType, FrameType
from typing import Any

__all__ = ["in_handler", "may_be_raised_by_handler", "raised_by_handler"]

_ALL = signal.valid_signals()


def in_handler(frame: FrameType | None, numbers: Collection[int] = _ALL) -> bool:
    """Return whether a handler, called for one of some signals, or what it has called, is executed in a frame."""
    return frame is not None and any(_handles(each, numbers) for each, _ in traceback.walk_stack(frame))


def raised_by_handler(error: BaseException | None, numbers: Collection[int] = _ALL) -> bool:
    """Return whether an exception has left a handler that was called for one of some signals."""
    return error is not None and any(_handles(frame, numbers) for frame, _ in traceback.walk_tb(error.__traceback__))


def may_be_raised_by_handler(error: BaseException) -> bool:
    """Return whether an exception has left a handler; one that has let its arguments go is known by its code, as long as it is set."""
    codes = {code for number in _ALL if (code := _code(signal.getsignal(number))) is not None}
    return raised_by_handler(error) or any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def _code(handler: Any) -> CodeType | None:
    while hasattr(handler, "func"):  # functools.partial
        handler = handler.func
    found = getattr(handler, "__code__", None) or getattr(getattr(type(handler), "__call__", None), "__code__", None)  # noqa: B004  # its code, not whether it has any
    return found if isinstance(found, CodeType) else None


def _handles(frame: FrameType, numbers: Collection[int]) -> bool:
    arguments = _arguments(frame) if frame.f_back is not None else ()
    called_for = any(isinstance(argument, int) and argument in numbers for argument in arguments)
    return called_for and any(argument is frame.f_back for argument in arguments)


def _arguments(frame: FrameType) -> tuple[Any, ...]:
    names, rest, _, values = inspect.getargvalues(frame)
    given = (*map(values.get, names), *(values.get(rest, ()) if rest else ()))
    handed_on = (each for argument in given if isinstance(argument, tuple) for each in argument)  # as decorators get them
    return (*given, *handed_on)
