"""Executors moved while dynamic allocation raises and lowers their number: from two to three here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from spark_drain_store.placement_messages import PlacementStatus
from spark_drain_store.placements import withdraw_placement

from tests.agent.harness import eventually
from tests.agent.placement.cluster import Placed, other, placed_on_three_nodes
from tests.support.apiserver import ApiServer

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(900)]

IN_PROGRESS, SUCCEEDED, FAILED = PlacementStatus.IN_PROGRESS, PlacementStatus.SUCCEEDED, PlacementStatus.FAILED
IDLE_SECONDS = 2
CONFS = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": f"{IDLE_SECONDS}s",
    "spark.dynamicAllocation.executorIdleTimeout": f"{IDLE_SECONDS}s",
    "spark.dynamicAllocation.minExecutors": "2",
    "spark.dynamicAllocation.maxExecutors": "3",
    # So many that of each batch some are left after the second that Spark waits before it asks for more executors.
    "spark.sql.shuffle.partitions": "48",
}


@pytest.fixture(scope="module")
def placed(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Placed]:
    with placed_on_three_nodes(api_server, tmp_path_factory.mktemp("nodes"), **CONFS) as application:
        yield application


@pytest.fixture
def two(placed: Placed) -> dict[str, str]:
    """As many executors as the minimum, for longer than an idle one is kept; returns the node of each."""
    placed.alone()
    time.sleep(IDLE_SECONDS + 1)
    return placed.settled()


@contextmanager
def three_busy(placed: Placed) -> Iterator[dict[str, str]]:
    """Load until there are as many executors as the maximum, and while the block lasts."""
    with placed.load():
        yield eventually(lambda: found if len(found := placed.running()) == 3 else None, "a third executor", alive=placed.driver)


def known(three: dict[str, str], two: dict[str, str]) -> str:
    """One that has registered with the driver: the pod of the third runs a moment before."""
    return min(executor for executor in three if executor in two)


def test_no_idle_executor_goes_for_the_new_one(placed: Placed, two: dict[str, str]) -> None:
    """Those at the minimum have been idle for long: with one more, Spark would end the first of them at once."""
    executor, node = sorted(two.items())[1]
    with placed.watching():
        response = placed.reaches(placed.request(executor, other(node)), SUCCEEDED)
        time.sleep(IDLE_SECONDS + 1)
        after = placed.alone()
    assert after == {key: value for key, value in two.items() if key != executor} | {response.new_executor_id: other(node)}
    assert placed.fewest == 2
    placed.batches(1)
    placed.check_ledger()


def test_an_executor_moves_at_the_maximum(placed: Placed, two: dict[str, str]) -> None:
    with three_busy(placed) as three:
        node = three[executor := known(three, two)]
        response = placed.reaches(placed.request(executor, other(node)), SUCCEEDED)
    assert (response.source_node, response.node) == (node, other(node))
    assert placed.fewest >= 2
    assert executor not in placed.alone()
    placed.check_ledger()


@pytest.mark.soak
def test_a_placement_in_vain_leaves_the_number_to_spark(placed: Placed, two: dict[str, str]) -> None:
    """Spark lowers the number while the placement waits, which has asked for one more."""
    with three_busy(placed) as three:
        executor = known(three, two)
        placement_id = placed.request(executor, "node-full", expiry_seconds=20)
        placed.reaches(placement_id, IN_PROGRESS)
    with placed.watching():
        time.sleep(IDLE_SECONDS + 3)
        assert executor in placed.running(), "it is not ended while it is being replaced"
        response = placed.reaches(placement_id, FAILED)
        placed.alone()
        time.sleep(IDLE_SECONDS + 1)
        placed.alone()
    assert "not there after 20 s: pod" in response.message
    assert placed.fewest == 2
    placed.batches(1)
    placed.check_ledger()


@pytest.mark.soak
def test_spark_gets_more_executors_while_a_placement_waits(placed: Placed, two: dict[str, str]) -> None:
    """Anywhere: only the one that was asked for is bound to the destination."""
    placement_id = placed.request(min(two), "node-full", expiry_seconds=300)
    placed.reaches(placement_id, IN_PROGRESS)
    eventually(lambda: len(placed.pods()) == 3, "a pod that waits")
    with three_busy(placed):
        assert placed.response(placement_id).status is IN_PROGRESS
        withdraw_placement(placed.channel, placement_id)
        placed.reaches(placement_id, FAILED)
    assert placed.fewest >= 2
    placed.alone()
    placed.check_ledger()


@pytest.mark.soak
def test_spark_has_fewer_executors_when_the_new_one_comes(placed: Placed, two: dict[str, str]) -> None:
    with three_busy(placed) as three:
        node = three[executor := known(three, two)]
        with placed.nodes.starting_nothing(other(node)):
            placement_id = placed.request(executor, other(node))
            placed.reaches(placement_id, IN_PROGRESS)
            eventually(lambda: len(placed.pods()) == 4, "a pod that waits", alive=placed.driver)
    with placed.watching():
        placed.reaches(placement_id, SUCCEEDED)
        after = placed.alone()
    assert executor not in after
    assert placed.fewest == 2
    placed.batches(1)
    placed.check_ledger()
