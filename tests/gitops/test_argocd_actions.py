"""The actions in Argo CD, by its Lua."""

from typing import Any

import pytest
from spark_drain_operator.kinds.drain.reasons import Phase
from spark_drain_operator.kinds.placement.reasons import Phase as PlacementPhase

from tests.gitops.conftest import Lua
from tests.gitops.objects import application, drain, placement

BEFORE_THE_FLUSH = (None, Phase.PENDING, Phase.AWAITING_APPROVAL, Phase.ACKNOWLEDGED, Phase.STOPPING)


def _enabled(lua: Lua, kind: str, body: dict[str, Any]) -> set[str]:
    found = lua("discovery", f"{kind}/actions/discovery.lua", body)
    return {each["name"] for each in found if not each.get("disabled")}


def test_which_actions_a_drain_offers(lua: Lua) -> None:
    for phase in (None, *Phase):
        wanted = {"approve"} if phase is Phase.AWAITING_APPROVAL else set()
        wanted |= {"cancel"} if phase in BEFORE_THE_FLUSH else set()
        assert _enabled(lua, "PipelineDrain", drain(phase, execution="AfterApproval")) == wanted, phase
    assert _enabled(lua, "PipelineDrain", drain(Phase.AWAITING_APPROVAL, execution="AfterApproval", approved=True)) == {"cancel"}
    assert _enabled(lua, "PipelineDrain", drain(Phase.STOPPING, cancel=True)) == set()


def test_which_actions_a_placement_offers(lua: Lua) -> None:
    for phase in (None, *PlacementPhase):
        wanted = {"cancel"} if phase is None or not phase.terminal else set()
        assert _enabled(lua, "ExecutorPlacement", placement(phase)) == wanted, phase
    assert _enabled(lua, "ExecutorPlacement", placement(PlacementPhase.MOVING, cancel=True)) == set()


@pytest.mark.parametrize("spec", [{}, {"suspend": False}, {"suspend": True}])
def test_which_actions_an_application_offers(lua: Lua, spec: dict[str, Any]) -> None:
    wanted = {"resume"} if spec.get("suspend") else {"suspend"}
    assert _enabled(lua, "SparkApplication", application("RUNNING", **spec)) == wanted


@pytest.mark.parametrize(
    ("kind", "action", "change"),
    [
        ("PipelineDrain", "approve", {"approved": True}),
        ("PipelineDrain", "cancel", {"cancel": True}),
        ("ExecutorPlacement", "cancel", {"cancel": True}),
        ("SparkApplication", "suspend", {"suspend": True}),
        ("SparkApplication", "resume", {"suspend": False}),
    ],
)
def test_an_action_changes_one_field(lua: Lua, kind: str, action: str, change: dict[str, Any]) -> None:
    bodies = {"PipelineDrain": drain(Phase.AWAITING_APPROVAL), "ExecutorPlacement": placement(PlacementPhase.MOVING)}
    body = bodies.get(kind) or application("RUNNING", "RUNNING")
    (changed,) = lua("action", f"{kind}/actions/{action}.lua", body)
    assert changed == {"operation": "patch", "resource": {**body, "spec": {**body["spec"], **change}}}
