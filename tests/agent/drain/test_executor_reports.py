"""Sorting the executors into those that reported and the others."""

from __future__ import annotations

from spark_drain_agent.drain.executor_reports import summarize


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
