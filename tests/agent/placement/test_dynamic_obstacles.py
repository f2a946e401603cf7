"""Each destination, and whatever gets in the way of a move, under dynamic allocation that wants two executors all the time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_drain_store.placement_messages import PlacementStatus

from tests.agent.harness import eventually
from tests.agent.placement import test_move
from tests.agent.placement.cluster import Placed, other, placed_on_three_nodes
from tests.agent.placement.test_dynamic_allocation import CONFS
from tests.support.apiserver import ApiServer

IN_PROGRESS, SUCCEEDED = PlacementStatus.IN_PROGRESS, PlacementStatus.SUCCEEDED
pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def placed(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Placed]:
    confs = CONFS | {"spark.dynamicAllocation.maxExecutors": "2", "spark.sql.shuffle.partitions": "2"}
    with placed_on_three_nodes(api_server, tmp_path_factory.mktemp("nodes"), **confs) as application:
        yield application


@pytest.fixture
def two(placed: Placed) -> dict[str, str]:
    return placed.settled()


class TestDestinations(test_move.TestDestinations):
    pass


class TestObstacles(test_move.TestObstacles):
    def test_the_destination_goes_away(self, placed: Placed, two: dict[str, str]) -> None:
        """Spark, too, removes pods that wait, when it wants fewer executors for a moment: another one is asked for."""
        executor, node = sorted(two.items())[0]
        destination = other(node)
        with placed.nodes.starting_nothing(destination):
            placement_id = placed.request(executor, destination)
            new = eventually(lambda: placed.reaches(placement_id, IN_PROGRESS).new_executor_id, "a pod is asked for")
            eventually(lambda: placed.pods()[new]["spec"].get("nodeName"), "it is bound")
            placed.client.request("DELETE", f"/api/v1/namespaces/{placed.namespace}/pods/{placed.pods()[new]['metadata']['name']}")
            eventually(lambda: placed.response(placement_id).new_executor_id != new, "another pod is asked for", alive=placed.driver)
        response = placed.reaches(placement_id, SUCCEEDED)
        assert response.node == destination
        assert executor not in placed.alone()
