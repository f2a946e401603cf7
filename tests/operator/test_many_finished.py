"""Finished drains cost nothing: thousands of them may be kept, each with its result."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from spark_drain_operator.storage.results import Results

from tests.operator.conftest import World
from tests.operator.finished import finished
from tests.support.waiting import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(900)]

RESULT = "x" * 20_000
MOST_MEBIBYTES, MOST_SECONDS = 200, 10.0


def with_result(world: World, number: int) -> None:
    """Make a drain as it is when it has ended, with its result."""
    body = finished(world.server, world.namespace, f"ended-{number}")
    Results(world.client).write(body, f"ended-{number}-result", {"report.json": RESULT})


@pytest.mark.parametrize("count", [5, 200, pytest.param(5000, marks=pytest.mark.soak)])
def test_a_live_drain_does_not_wait_for_those_that_have_ended(own_world: World, count: int) -> None:
    world = own_world
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: with_result(world, number), range(count)))
    world.operator.start()
    agent = world.run_application()
    eventually(lambda: "watching" in world.operator.log(), "the operator is there", 60)
    world.create_drain("at-start")
    agent.await_notification()
    world.patch_drain("at-start", spec={"cancel": True})
    world.await_phase("Cancelled", "at-start")
    agent.await_no_notification()

    begun = time.monotonic()
    world.create_drain("live")
    agent.await_notification()
    assert time.monotonic() - begun < MOST_SECONDS
    used = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{world.operator.pid}/status").read_text())
    assert used is not None
    assert int(used[1]) / 1024 < MOST_MEBIBYTES
    assert "PATCH" not in "".join(line for line in world.operator.log().splitlines() if "ended-" in line)
    print(f"{count} finished drains: {int(used[1]) / 1024:.0f} MiB at most, a live one waited {time.monotonic() - begun:.2f} s")
