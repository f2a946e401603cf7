"""Sorting the executors into those that reported and the others."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from spark_drain_agent.drain.executor_reports import collect_executor_reports, summarize


def test_all_reported() -> None:
    summary = summarize({"1": "a", "2": "b"}, {"1", "2"}, {"1", "2"})
    assert (summary.expected, summary.drained, summary.exceptions) == (2, "1-2", ())


def test_gone_and_silent_are_told_apart() -> None:
    summary = summarize({"1": "a", "2": "b", "10": "c"}, {"1"}, {"1", "10"})
    assert [(item.id, item.state) for item in summary.exceptions] == [("2", "Gone"), ("10", "Silent")]
    assert summary.drained == "1"


def test_newcomers_count_as_drained_but_were_not_expected() -> None:
    summary = summarize({"1": "a"}, {"1", "2"}, {"1", "2"})
    assert (summary.expected, summary.drained) == (1, "1-2")


def test_local_mode_has_none() -> None:
    assert summarize({}, set(), set()).expected == 0


def test_at_most_fifty_exceptions_the_lowest_ids_first() -> None:
    summary = summarize({str(number): "host" for number in range(1, 201)}, set(), set())
    assert [item.id for item in summary.exceptions] == [str(number) for number in range(1, 51)]
    assert summary.expected == 200


def test_where_no_thread_can_ask_them_they_are_silent_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    context = SimpleNamespace(_jsc=None, _gateway=None, getLocalProperty=lambda _: None)  # as one that was stopped
    answers_of: Any = lambda missing: {executor for _, executor in missing}  # noqa: E731
    internals: Any = SimpleNamespace(context=context, executors=lambda: [("1", "host")], answers_of=answers_of)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        summary = collect_executor_reports(internals, {"1": "host"})
    assert summary.silent
    assert collect_executor_reports(internals, {"1": "host"}, summary).drained == "1"
