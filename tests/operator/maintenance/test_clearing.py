"""Which nodes are cleared, and how long they have."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from spark_drain_operator.maintenance.clearing import clearing_of, time_given
from spark_drain_operator.settings import NodeSettings

SEEN = datetime(2026, 11, 25, 12, tzinfo=UTC)
SETTINGS = NodeSettings(taints={"example.com/going": 120, "ToBeDeletedByClusterAutoscaler": 60}, cordon_seconds=1800)
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-11-25T11:50:00Z"}
GOING = {"key": "example.com/going", "effect": "NoSchedule"}
GOING_SINCE = {**GOING, "effect": "NoExecute", "timeAdded": "2026-11-25T11:59:00Z"}
SCALED_DOWN = {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule", "value": "1795607970"}


@pytest.mark.parametrize(
    ("spec", "why", "since", "seconds"),
    [
        pytest.param({"unschedulable": True}, "cordoned", 0, 1800, id="cordoned"),
        pytest.param({"unschedulable": True, "taints": [CORDONED]}, "cordoned", -600, 1200, id="cordoned ten minutes ago"),
        pytest.param({"taints": [GOING]}, "example.com/going", 0, 120, id="tainted"),
        pytest.param({"taints": [GOING_SINCE]}, "example.com/going", -60, 60, id="tainted a minute ago"),
        pytest.param({"taints": [{**GOING, "timeAdded": "soon"}]}, "example.com/going", 0, 120, id="a time that is none"),
        pytest.param({"taints": [{**GOING, "timeAdded": "2026-11-25T13:00:00Z"}]}, "example.com/going", 0, 120, id="a time to come"),
        pytest.param({"taints": [SCALED_DOWN]}, SCALED_DOWN["key"], -30, 30, id="cluster-autoscaler's value is the time"),
        pytest.param({"taints": [{**SCALED_DOWN, "value": "7"}]}, SCALED_DOWN["key"], 0, 60, id="a value that is no time of today"),
        pytest.param({"taints": [{**GOING, "value": "1795607970"}]}, "example.com/going", 0, 120, id="other taints' values are none"),
        pytest.param({"unschedulable": True, "taints": [CORDONED, GOING]}, "example.com/going", -600, 120, id="the one that leaves less"),
        pytest.param({"unschedulable": True, "taints": [GOING_SINCE]}, "example.com/going", -60, 60, id="whichever came first"),
    ],
)
def test_what_a_node_tells(spec: dict[str, Any], why: str, since: int, seconds: int) -> None:
    found = clearing_of({"metadata": {"name": "n", "uid": "u"}, "spec": spec}, SETTINGS, lambda _: SEEN, SEEN)
    assert found is not None
    assert (found.node, found.uid, found.why) == ("n", "u", why)
    assert found.since == SEEN + timedelta(seconds=since)
    assert found.until == SEEN + timedelta(seconds=seconds)
    assert found.seconds_left(SEEN + timedelta(days=1)) == 0


@pytest.mark.parametrize(
    ("given", "cordoned", "since", "until"),
    [
        ("60s from 2026-11-25T11:50:01Z", "2026-11-25T11:50:00Z", -599, -539),
        ("7200s from 2026-11-25T11:49:56Z", "2026-11-25T11:50:00Z", -604, 6596),
        ("7200s from 2026-11-25T11:59:58Z", None, -2, 7198),
        ("7200s from 2026-11-25T11:59:00Z", None, 0, 1800),
        ("7200s from 2026-11-25T11:49:50Z", "2026-11-25T11:50:00Z", -600, 1200),
        ("2h", "2026-11-25T11:50:00Z", -600, 1200),
        ("7200s from soon", "2026-11-25T11:50:00Z", -600, 1200),
    ],
    ids=["less", "more", "before its taint", "of an earlier one, before its taint", "of an earlier cordon", "another form", "no time"],
)
def test_the_time_that_the_command_has_given(given: str, cordoned: str | None, since: int, until: int) -> None:
    spec = {"unschedulable": True, "taints": [CORDONED | {"timeAdded": cordoned}] if cordoned else []}
    metadata = {"name": "n", "uid": "u", "annotations": {"sparkdrain.io/clear-within": given}}
    found = clearing_of({"metadata": metadata, "spec": spec}, SETTINGS, lambda _: SEEN, SEEN)
    assert found is not None
    assert (found.since, found.until) == (SEEN + timedelta(seconds=since), SEEN + timedelta(seconds=until))


def test_the_command_gives_a_time_that_the_watch_reads() -> None:
    metadata = {"name": "n", "uid": "u", "annotations": time_given(90, SEEN)}
    found = clearing_of({"metadata": metadata, "spec": {"unschedulable": True}}, SETTINGS, lambda _: SEEN, SEEN)
    assert found is not None
    assert (found.since, found.until) == (SEEN, SEEN + timedelta(seconds=90))


@pytest.mark.parametrize(
    "spec",
    [{}, {"unschedulable": False}, {"taints": [CORDONED]}, {"taints": [{"key": "example.com/other", "effect": "NoExecute"}]}],
)
def test_what_is_no_mark(spec: dict[str, Any]) -> None:
    assert clearing_of({"metadata": {"name": "n", "uid": "u"}, "spec": spec}, SETTINGS, lambda _: SEEN, SEEN) is None
