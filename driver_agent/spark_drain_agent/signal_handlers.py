"""Handlers of signals that the application has set, and what they raise into code that they interrupt."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Set
from types import CodeType
from typing import Any

__all__ = ["codes_of_handlers", "is_raised_in"]


def is_raised_in(codes: Set[CodeType], error: BaseException | None) -> bool:
    """Return whether an exception has come through a function that has one of these codes."""
    traceback = None if error is None else error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


def codes_of_handlers(numbers: Iterable[int]) -> set[CodeType]:
    """Return the codes of the functions that handle these signals."""
    return {code for number in numbers if (code := _code(signal.getsignal(number))) is not None}


def _code(handler: Any) -> CodeType | None:
    while hasattr(handler, "func"):  # functools.partial
        handler = handler.func
    found = getattr(handler, "__code__", None) or getattr(getattr(type(handler), "__call__", None), "__code__", None)  # noqa: B004  # its code, not whether it has any
    return found if isinstance(found, CodeType) else None
