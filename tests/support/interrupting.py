"""A call that is interrupted before each of its lines, as a signal handler may."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_LONGEST_SECONDS = 5.0
_TRIES = 4
"""A call with a limit of time gets less far on a machine that is busy for a moment."""


def interrupted_at_each_line(calls: Callable[[], tuple[Callable[[], object], Callable[[], object]]], *, files: tuple[str, ...]) -> int:
    """Make a call again and again, each time with a handler at the next line; return how many lines there were.

    Parameters
    ----------
    calls
        Returns a call, and what the handler calls.
    files
        Ends of the paths of the files whose lines count.

    Raises
    ------
    AssertionError
        A call did not return.
    """
    line = 0
    while any(_is_interrupted_at(line, *calls(), files) for _ in range(_TRIES)):
        line += 1
    return line


def _is_interrupted_at(line: int, call: Callable[[], object], handler: Callable[[], object], files: tuple[str, ...]) -> bool:
    """Make the call in a thread; return whether it came to that line."""
    place: list[str] = []
    thread = threading.Thread(target=_call, args=(call, handler, line, files, place), daemon=True)
    thread.start()
    thread.join(_LONGEST_SECONDS)
    assert not thread.is_alive(), f"hangs when interrupted at {place}"
    return bool(place)


def _call(call: Callable[[], object], handler: Callable[[], object], line: int, files: tuple[str, ...], place: list[str]) -> None:
    left = line

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(files):
            return None
        if event == "line":
            if left == 0:
                place.append(f"{frame.f_code.co_qualname}, line {frame.f_lineno}")
                handler()  # nothing is traced in a trace function
            left -= 1
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
