"""Two drains of one application that come at the same moment, the first ones it has: exactly one is accepted."""

import threading

import pytest

from tests.operator.conftest import World, condition
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import DRAINS, drain_body
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


@pytest.mark.parametrize("pairs", [20, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
def test_one_of_two_drains_at_once_is_accepted(world: World, pairs: int) -> None:
    names = [f"app-{number}" for number in range(pairs)]
    for name in names:
        ScriptedApplication(world.client, world.namespace, name).create().start(executors=0)
    together = threading.Barrier(2)

    def create(which: str) -> None:
        for name in names:
            body = drain_body(f"{name}-{which}")
            body["spec"]["applicationRef"]["name"] = name
            together.wait(60)
            world.client.request("POST", DRAINS.format(world.namespace), body=body)

    threads = [threading.Thread(target=create, args=(which,)) for which in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    def reasons() -> list[tuple[str, ...]] | None:
        found = [tuple(sorted(_accepted(world, f"{name}-{which}") for which in ("a", "b"))) for name in names]
        return None if any("" in pair or "Pending" in pair for pair in found) else found

    decided = eventually(reasons, "every drain to be decided", 60 + 2 * pairs)
    assert set(decided) == {("Accepted", "DrainAlreadyActive")}


def _accepted(world: World, name: str) -> str:
    found = condition(world.drain(name), "Accepted")
    return str(found["reason"]) if found else ""
