"""The stateful operators that the agent sees in real plans, and those that Spark reports when such a plan runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agent.harness import Driver, Feed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200), pytest.mark.xdist_group("plans")]

FLUSHED, FORGOTTEN, TIMERS = (True, False), (False, False), (True, True)
PLANNED = {
    "projection": [],
    "window": [("Aggregate", *FLUSHED)],
    "window-and-key": [("Aggregate", *FLUSHED)],
    "session-window": [("Aggregate", *FLUSHED)],
    "event-time-itself": [("Aggregate", *FLUSHED)],
    "window-without-watermark": [("Aggregate", *FORGOTTEN)],
    "key-only": [("Aggregate", *FORGOTTEN)],
    "window-of-window": [("Aggregate", *FLUSHED)] * 2,
    "window-in-sql": [("Aggregate", *FLUSHED)],
    "distinct-in-sql": [("Aggregate", *FORGOTTEN)],
    "distinct-event-times-in-sql": [("Aggregate", *FLUSHED)],
    "deduplicated": [("Deduplicate", *FORGOTTEN)],
    "deduplicated-by-event-time": [("Deduplicate", *FLUSHED)],
    "deduplicated-within-watermark": [("DeduplicateWithinWatermark", *FORGOTTEN)],
    "joined-with-static": [],
    "joined-with-static-counts": [],
    "joined": [("Join", *FLUSHED)],
    "joined-without-watermark": [("Join", *FORGOTTEN)],
    "joined-unbounded": [("Join", *FORGOTTEN)],
    "joined-bounded-above-only": [("Join", *FORGOTTEN)],
    "joined-bounded-below-only": [("Join", *FORGOTTEN)],
    "joined-bounded-with-one-watermark": [("Join", *FORGOTTEN)],
    "joined-bounded-by-a-filter": [("Join", *FLUSHED)],
    "joined-on-event-time": [("Join", *FLUSHED)],
    "joined-on-event-time-with-one-watermark": [("Join", *FLUSHED)],
    "joined-on-windows": [("Join", *FLUSHED)],
    "joined-on-the-start-of-windows": [("Join", *FORGOTTEN)],
    "joined-left": [("Join", *FLUSHED)],
    "joined-left-bounded-above-only": [("Join", *FORGOTTEN)],
    "joined-right": [("Join", *FLUSHED)],
    "joined-right-bounded-below-only": [("Join", *FORGOTTEN)],
    "joined-full": [("Join", *FLUSHED)],
    "joined-semi": [("Join", *FLUSHED)],
    "joined-semi-bounded-above-only": [("Join", *FORGOTTEN)],
    "window-of-joined": [("Aggregate", *FLUSHED), ("Join", *FLUSHED)],
    "hours-that-are-no-windows": [("Aggregate", *FORGOTTEN)],
    "start-of-windows": [("Aggregate", *FORGOTTEN), ("Aggregate", *FLUSHED)],
    "event-time-renamed": [("Aggregate", *FLUSHED)],
    "event-time-in-a-struct": [("Aggregate", *FLUSHED)],
    "limited": [("GlobalLimit", *FORGOTTEN)],
    "state-without-timeout": [("FlatMapGroupsInPandasWithState", *FORGOTTEN)],
    "state-with-event-time-timeout": [("FlatMapGroupsInPandasWithState", *TIMERS)],
    "state-with-processing-time-timeout": [("FlatMapGroupsInPandasWithState", *TIMERS)],
    "pandas-per-key": [],
    "arrow-per-key": [],
    "union-of-windows": [("Aggregate", *FLUSHED)] * 2,
}
RUN = ("distinct-event-times-in-sql", "pandas-per-key", "arrow-per-key")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    base = tmp_path_factory.mktemp("plans")
    Feed(base / "input").add()
    driver = Driver("plans.py", base, *RUN, store=None)
    try:
        assert driver.wait() == 0, driver.tail()
    finally:
        driver.close()
    loaded: dict[str, dict[str, Any]] = json.loads((base / "plans.json").read_text())
    return loaded


@pytest.mark.parametrize("name", PLANNED)
def test_operators_of_a_plan(found: dict[str, dict[str, Any]], name: str) -> None:
    assert [tuple(operator) for operator in found[name]["planned"]] == PLANNED[name]


def test_every_plan_is_expected(found: dict[str, dict[str, Any]]) -> None:
    assert set(found) == set(PLANNED)


@pytest.mark.parametrize("name", RUN)
def test_spark_keeps_state_in_no_more_operators_than_planned(found: dict[str, dict[str, Any]], name: str) -> None:
    assert len(found[name]["running"]) == len(PLANNED[name])
