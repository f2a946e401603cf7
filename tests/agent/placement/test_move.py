"""Executors moved under load: real API server, scheduler, driver and executors (after Samza's TestContainerPlacementActions)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_drain_store.placement_messages import PlacementStatus

from tests.agent.placement.cluster import Placed, placed_application
from tests.support.apiserver import ApiServer
from tests.support.process_nodes import ProcessNode, process_nodes

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(900)]

SUCCEEDED, FAILED, BAD_REQUEST = PlacementStatus.SUCCEEDED, PlacementStatus.FAILED, PlacementStatus.BAD_REQUEST


@pytest.fixture(scope="module")
def placed(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Placed]:
    folder = tmp_path_factory.mktemp("nodes")
    two = [ProcessNode("node-1", "127.0.0.11", {"pool": "slow"}), ProcessNode("node-2", "127.0.0.12", {"pool": "fast"})]
    with process_nodes(api_server, two, folder) as nodes, placed_application(api_server, nodes, folder / "base") as application:
        yield application


def other(node: str) -> str:
    return {"node-1": "node-2", "node-2": "node-1"}[node]


def test_successful_move(placed: Placed) -> None:
    executor, node = sorted(placed.alone().items())[0]
    with placed.load():
        response = placed.reaches(placed.request(executor, other(node)), SUCCEEDED)
        placed.alone()
    assert (response.source_node, response.node) == (node, other(node))
    assert placed.running()[response.new_executor_id] == other(node)
    assert executor not in placed.running()
    assert placed.fewest >= 2
    placed.check_ledger()
