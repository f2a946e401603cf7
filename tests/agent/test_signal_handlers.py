"""What a handler of a signal is, told from the same function when the program calls it itself."""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

import pytest
from spark_drain_agent.signal_handlers import in_handler, may_be_raised_by_handler, raised_by_handler

_USED = signal.SIGUSR1
_seen: list[bool] = []


class TimeIsUpError(Exception):
    """What a handler raises."""


def _end(signum: int = 0, frame: FrameType | None = None) -> NoReturn:
    """End the program, as a handler or when main has its own reason."""
    _seen.append(in_handler(sys._getframe()))
    raise TimeIsUpError(signum)


def _end_once(signum: int, frame: FrameType | None) -> NoReturn:
    """Let a second signal end the program at once."""
    signal.signal(signum, signal.SIG_IGN)
    _end()


def _decorated(wrapped: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return wrapped(*arguments)


def _end_without_arguments(signum: int, frame: FrameType | None) -> NoReturn:
    del signum, frame  # unused
    _end()


class _Application:
    def __call__(self, *arguments: Any) -> NoReturn:
        _end()

    def end(self, signum: int, frame: FrameType | None) -> NoReturn:
        _end()


def _named(name: str, signum: int, frame: FrameType | None) -> NoReturn:
    assert name == "end"
    _end()


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = signal.getsignal(_USED)
    _seen.clear()
    yield
    signal.signal(_USED, before)


@pytest.mark.parametrize(
    "handler",
    [
        *(_end, _end_once, lambda *_: _end(), _Application().end, _Application(), functools.partial(_named, "end")),
        lambda *given: _decorated(_end_without_arguments, given),
    ],
    ids=["function", "sets another", "lambda", "method", "object", "partial", "decorated"],
)
def test_what_a_handler_raises(handler: Callable[[int, FrameType | None], Any]) -> None:
    signal.signal(_USED, handler)
    with pytest.raises(TimeIsUpError) as raised:
        signal.raise_signal(_USED)
    assert raised_by_handler(raised.value)
    assert _seen == [True]


def test_what_a_handler_raises_that_has_let_its_arguments_go() -> None:
    signal.signal(_USED, _end_without_arguments)
    with pytest.raises(TimeIsUpError) as raised:
        signal.raise_signal(_USED)
    assert may_be_raised_by_handler(raised.value)
    signal.signal(_USED, signal.SIG_IGN)
    assert not may_be_raised_by_handler(raised.value)


def test_a_handler_that_the_program_calls_itself() -> None:
    """Main has come to its end, and no signal has."""
    signal.signal(_USED, _end)
    with pytest.raises(TimeIsUpError) as raised:
        _end(_USED)
    assert not raised_by_handler(raised.value)
    assert _seen == [False]
    assert not raised_by_handler(None)
