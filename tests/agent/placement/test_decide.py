"""Why a placement is refused."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from spark_drain_agent.placement.decide import Seen, asked_for, refusal
from spark_drain_agent.spark_internals.executor_pods import ExecutorPod
from spark_drain_store.placement_messages import PlacementRequest

REQUEST = PlacementRequest(placement_id="p", created_at=datetime(2026, 11, 24, tzinfo=UTC), executor_id="4", destination_host="node-2")
SEEN = Seen(
    run_id="spark-1",
    registered=frozenset({"4", "10", "9"}),
    pods={name: ExecutorPod(executor_id=name, name=f"exec-{name}", node="node-1") for name in ("4", "5")},
)


@pytest.mark.parametrize(
    ("asked", "seen", "told"),
    [
        ({}, {}, ""),
        ({"destination_host": "LAST_SEEN"}, {}, ""),
        ({"run_id": "spark-1"}, {}, ""),
        ({"destination_host": ""}, {}, "destinationHost must be"),
        ({"destination_host": "STANDBY"}, {}, "Spark has no standby executors"),
        ({"run_id": "spark-0"}, {}, "meant for run spark-0, and run spark-1 has taken its place"),
        ({"withdrawn": True}, {}, "withdrawn before it was begun"),
        ({}, {"unsupported": "dynamic allocation"}, "cannot be replaced one by one: dynamic allocation"),
        ({}, {"drain_id": "d"}, "drain d is under way"),
        ({"executor_id": "7"}, {}, "there is no executor 7 in run spark-1: there are 4, 9, 10"),
        ({"executor_id": "5"}, {}, "there is no executor 5"),
        ({"executor_id": "9"}, {}, "there is no executor 9"),
        ({}, {"registered": frozenset()}, "there are none"),
        ({"destination_host": "node-1"}, {}, "is on node node-1 already; to restart it there, give LAST_SEEN"),
        ({}, {"objection": "node node-2 is cordoned"}, "node node-2 is cordoned"),
    ],
)
def test_refusal(asked: dict[str, Any], seen: dict[str, Any], told: str) -> None:
    why = refusal(replace(REQUEST, **asked), replace(SEEN, **seen))
    assert told in why
    assert bool(told) == bool(why)


@pytest.mark.parametrize(
    ("wanted", "others", "forced", "asked"),
    [
        (2, "3 4", False, 3),
        (2, "4", False, 3),  # another one has just been lost
        (2, "3 4 5", False, 4),  # dynamic allocation wants fewer than there are
        (5, "3 4", False, 6),  # and more
        (0, "4", False, 2),
        (0, "", False, 1),
        (2, "3 4", True, 2),
        (2, "3", True, 2),  # the old one has ended
        (2, "3 4 5", True, 3),
        (2, "3 5", True, 3),
        (5, "3 4", True, 5),
        (0, "", True, 1),
    ],
)
def test_how_many_executors_are_asked_for(wanted: int, others: str, forced: bool, asked: int) -> None:
    assert asked_for(wanted, others.split(), "4", forced=forced) == asked
