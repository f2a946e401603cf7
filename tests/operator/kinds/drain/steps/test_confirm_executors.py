"""A report against the pods that run, as tables."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_drain_operator.applications.protocol import Application
from spark_drain_operator.kinds.drain.steps import confirm_executors as executors
from spark_drain_store import DrainReport, DrainState, ExecutorException

from tests.operator.kinds.drain.samples import application, driver, report

DONE = report(DrainState.DRAINED, driver_pod_uid="uid-one")


@pytest.mark.parametrize(
    ("seen", "given", "expected"),
    [
        (application("RUNNING", driver()), DONE, executors.Driver.CONFIRMED),
        (application("RUNNING", driver("two")), DONE, executors.Driver.OTHER),
        (application("RUNNING", driver(uid="another")), DONE, executors.Driver.OTHER),
        (application("RUNNING", driver()), report(DrainState.DRAINED), executors.Driver.OTHER),
        (application("RUNNING", driver(terminating=True)), DONE, executors.Driver.OTHER),
        (application("PENDING_RERUN"), DONE, executors.Driver.OTHER),
        (application("COMPLETED", driver(phase="Succeeded")), DONE, executors.Driver.GONE),
        (None, DONE, executors.Driver.GONE),
    ],
)
def test_confirm_driver(seen: Application | None, given: DrainReport, expected: executors.Driver) -> None:
    author, detail = executors.confirm_driver(seen, given)
    assert author is expected
    assert bool(detail) == (author is executors.Driver.OTHER)


@pytest.mark.parametrize(
    ("drained", "expected", "exceptions", "live", "missing"),
    [
        ("1-2", 2, [], ["1", "2"], []),
        ("", 0, [], [], []),
        ("1-4711,4713-10000", 10000, [("4712", "Gone")], ["4711", "4713"], []),
        ("1,3", 3, [], ["1", "2", "3"], ["2"]),
        ("1,3", 3, [("2", "Idle")], ["1", "2", "3"], []),
        ("1,3", 3, [("2", "Silent")], ["2"], ["2"]),
        ("1-2", 2, [], ["3"], []),
        ("1,3", 2, [], ["1", "2", "3"], []),
        ("1,3", 3, [("4", "Silent")], ["2"], ["2"]),
        ("1,3", 2, [("4", "Silent")], ["2", "4"], ["4"]),
        ("1,3", 52, [(str(number), "Gone") for number in range(4, 54)], ["2", "54"], ["2"]),
        ("1-2", 3, [], ["3"], ["3"]),
        ("", 0, [], ["1"], []),
        ("1-2", 2, [], ["driver"], ["driver"]),
        ("1-2", 2, [("²", "Gone")], ["1", "²", "9" * 5000], ["9" * 5000]),
        ("nonsense", 1, [], ["10", "9"], ["9", "10"]),
    ],
)
def test_unaccounted(drained: str, expected: int, exceptions: list[tuple[str, str]], live: list[str], missing: list[str]) -> None:
    given = report(
        DrainState.DRAINED,
        executors_drained=drained,
        executors_expected=expected,
        executor_exceptions=tuple(ExecutorException(id=id_, state=state) for id_, state in exceptions),
    )
    assert executors.unaccounted(given, live) == missing


def test_ten_thousand_executors_are_no_burden() -> None:
    """Every second one is in the report, so there are as many ranges."""
    drained = ",".join(str(number) for number in range(1, 10_001, 2))
    answer = report(DrainState.DRAINED, executors_drained=drained, executors_expected=10_000)
    begun = time.monotonic()
    missing = executors.unaccounted(answer, [str(number) for number in range(1, 10_001)])
    assert missing == [str(number) for number in range(2, 10_001, 2)]
    assert time.monotonic() - begun < 5, "it took 19 s when every range was looked at for every executor"


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8))), st.lists(st.integers(0, 40), unique=True))
def test_ranges_may_overlap_and_come_in_any_order(ranges: list[tuple[int, int]], live: list[int]) -> None:
    drained = ",".join(f"{first}-{first + more}" for first, more in ranges)
    known = {number for first, more in ranges for number in range(first, first + more + 1)}
    given_report = report(DrainState.DRAINED, executors_drained=drained, executors_expected=10_000)
    assert executors.unaccounted(given_report, map(str, live)) == [str(number) for number in sorted(set(live) - known)]
