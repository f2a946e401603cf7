"""What the application does with its queries while a drain decides, on a clock of the test's own."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from spark_drain_agent.drain import starts
from spark_drain_agent.drain.starts import Starts
from spark_drain_agent.queries.standing import Standing


class Application:
    """Queries that it has stopped, each with the time at which it is started again; None for one that is not."""

    def __init__(self, *restarts: float | None) -> None:
        self.now = 0.0
        self._restarts = restarts
        self._stopped = [Mock(**{"standing.return_value": Standing.STOPPED}) for _ in restarts]
        self._again = [Mock(**{"standing.return_value": Standing.RUNS}) for _ in restarts]

    def pause(self) -> None:
        self.now += 0.05

    def queries(self) -> tuple[Mock, ...]:
        runs = [at is not None and at <= self.now for at in self._restarts]
        return tuple(again if run else stopped for run, stopped, again in zip(runs, self._stopped, self._again, strict=True))


@pytest.mark.parametrize(
    ("restarts", "waited"),
    [
        pytest.param((1.5,), 1.5, id="one"),
        pytest.param((1.5, 3.0, 4.5), 4.5, id="one after the other"),
        pytest.param((None,), 2.0, id="not started again"),
        pytest.param((1.5, None), 3.5, id="one of two"),
        pytest.param((), 0.0, id="none was stopped"),
    ],
)
def test_how_long_a_restart_is_waited_for(monkeypatch: pytest.MonkeyPatch, restarts: tuple[float | None, ...], waited: float) -> None:
    """A program that stops all of its queries, as for fresh static data, starts them one by one."""
    application = Application(*restarts)
    monkeypatch.setattr(starts, "monotonic", lambda: application.now)
    host = Mock(**{"registry.all": application.queries, "held.ended.return_value": False})
    of_drain = Starts(host, lambda _: True, application.pause, Mock())
    of_drain.let_restart()
    first = application.now
    of_drain.let_restart()
    assert (first, application.now) == pytest.approx((waited, waited), abs=0.15)  # what was waited for once is not waited for again


@pytest.mark.parametrize("seconds", [9.0, 30.0])
def test_a_start_that_takes_long_is_told(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    application, slow = Application(), Mock(label="query 'slow'")
    told: list[str] = []
    monkeypatch.setattr(starts, "monotonic", lambda: application.now)
    host = Mock(**{"gate.starts_in_flight": lambda: [slow] if application.now < seconds else []})
    Starts(host, lambda _: True, application.pause, told.append).wait()
    message = "waits until the application has started query 'slow', which takes long where a source or a listener does"
    assert told == ([message, ""] if seconds > 10 else [])
