"""Which signals tell a program that a drain holds to end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest
from spark_drain_agent.driver import signals


@pytest.mark.parametrize(
    ("number", "seconds_before", "told"),
    [
        (signal.SIGTERM, 86400.0, True),
        (signal.SIGINT, -1.0, True),
        (signal.SIGINT, 5.0, True),
        (signal.SIGINT, 3600.0, False),
        (None, 0.0, False),
    ],
)
def test_a_signal_counts_that_came_in_the_drain_or_just_before(
    monkeypatch: pytest.MonkeyPatch, number: int | None, seconds_before: float, told: bool
) -> None:
    """A program that was interrupted may clean up for some time; Ctrl-C in a notebook's cell of an hour ago means nothing."""
    monkeypatch.setattr(signals, "_arrived", {} if number is None else {number: 1e6 - seconds_before})
    assert signals.told_to_end(1e6) is told


class ToldError(Exception):
    """What a handler raises."""


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave handlers as they are, and no signal noted, where an agent is attached in this process."""
    monkeypatch.setattr(signals, "_arrived", {})
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("number", "ends"), [(signal.SIGTERM, True), (signal.SIGHUP, True), (signal.SIGQUIT, True), (signal.SIGALRM, False)]
)
def test_a_program_ends_for_some_signals_only(number: int, ends: bool) -> None:
    """A time limit is no word of Kubernetes'."""
    seen = []

    def tell(signum: int, frame: FrameType | None) -> None:
        seen.append(signals.ends_for_a_signal())
        raise ToldError

    signal.signal(number, tell)
    try:
        signal.raise_signal(number)
    except ToldError:
        seen.append(signals.ends_for_a_signal())
    assert seen == [ends, ends]
