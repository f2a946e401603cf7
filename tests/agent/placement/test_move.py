"""Executors moved under load: real API server, scheduler, driver and executors (after Samza's TestContainerPlacementActions)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from spark_drain_store.placement_messages import PlacementRequest, PlacementStatus
from spark_drain_store.placements import Placements, delete_placement, withdraw_placement

from tests.agent.harness import eventually
from tests.agent.placement.cluster import APPLICATION, Placed, other, placed_on_three_nodes
from tests.support.apiserver import PLACEMENTS, ROOT, ApiServer, placement_body

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(900)]

BAD_REQUEST, ACCEPTED, IN_PROGRESS = PlacementStatus.BAD_REQUEST, PlacementStatus.ACCEPTED, PlacementStatus.IN_PROGRESS
SUCCEEDED, FAILED = PlacementStatus.SUCCEEDED, PlacementStatus.FAILED


@pytest.fixture(scope="module")
def placed(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Placed]:
    with placed_on_three_nodes(api_server, tmp_path_factory.mktemp("nodes")) as application:
        yield application


@pytest.fixture
def two(placed: Placed) -> dict[str, str]:
    """Two executors and nothing else; returns the node of each."""
    return placed.settled()


@pytest.mark.soak
def test_successful_move(placed: Placed, two: dict[str, str]) -> None:
    executor, node = sorted(two.items())[0]
    with placed.load():
        response = placed.reaches(placed.request(executor, other(node)), SUCCEEDED)
        after = placed.alone()
    assert (response.source_node, response.node) == (node, other(node))
    assert after == {key: value for key, value in two.items() if key != executor} | {response.new_executor_id: other(node)}
    assert placed.fewest == 2
    placed.check_ledger()


def test_an_executor_is_moved_by_kubectl_apply(placed: Placed, two: dict[str, str], api_server: ApiServer, tmp_path: Path) -> None:
    """The whole way: ExecutorPlacement, operator, agent, Spark, scheduler, and back into the status."""
    executor, node = sorted(two.items())[0]
    pod = placed.pods()[executor]["metadata"]["name"]
    with placed.operated(), placed.load():
        body = placement_body(podName=pod, destination={"type": "Node", "nodeName": other(node)})
        api_server.run_kubectl("apply", "-n", placed.namespace, "-f", "-", text=json.dumps(body))
        api_server.run_kubectl("wait", "epl/placement", "-n", placed.namespace, "--for=condition=Finished", "--timeout=180s")
        after = placed.alone()
    found = placed.client.request("GET", f"{PLACEMENTS.format(placed.namespace)}/placement")
    status = found["status"]
    assert status["phase"] == "Succeeded", status
    assert status["executor"] == {"id": executor, "nodeName": node}
    new = status["replacement"]["id"]
    assert after == {key: value for key, value in two.items() if key != executor} | {new: other(node)}
    if "firstBatch" in status:  # else no batch has begun soon
        assert status["firstBatch"].keys() == {"query", "milliseconds", "ordinaryMilliseconds"}
        assert "; the first batch of query placed after that took " in status["message"]
    assert placed.fewest == 2
    assert found["metadata"]["uid"] not in Placements.read(placed.channel).requests
    placed.check_ledger()


@pytest.mark.soak
def test_a_node_is_cleared_of_executors(placed: Placed, two: dict[str, str]) -> None:
    """Those that are there leave it, one after the other, and none is missing meanwhile; `kubectl drain` waits, and ends by itself."""
    node = two[min(two)]
    placed.application.annotate(evacuate="true")
    budget = (ROOT / "examples/nodes/budget.yaml").read_text().replace("clicks", APPLICATION)
    placed.server.run_kubectl("apply", "-n", placed.namespace, "-f", "-", text=budget)
    drain = ["drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=300s"]  # no driver pod owns them here
    command = [sys.executable, "-m", "spark_drain_operator", "evacuate", node, "--within", "5m"]
    try:
        with ThreadPoolExecutor(1) as pool, placed.operated(), placed.load():
            drained = pool.submit(placed.server.run_kubectl, *drain)
            done = subprocess.run(command, env=placed.server.environment(), capture_output=True, text=True, check=False)
            assert done.returncode == 0, done
            drained.result()
            after = placed.alone()
    finally:
        placed.nodes.cordon(node, on=False)
        placed.server.run_kubectl("delete", "pdb", "--all", "-n", placed.namespace)
    assert f"node {node} is clear" in done.stdout
    assert set(after.values()) == {other(node)}
    assert placed.fewest == 2
    placed.check_ledger()


def test_a_node_that_is_drained_is_cleared_by_the_operator(placed: Placed, two: dict[str, str]) -> None:
    """With the watch of nodes `kubectl drain` alone is enough: it waits until others have taken the place of the executors."""
    node = two[min(two)]
    placed.application.annotate(evacuate="true")
    drain = ["drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=300s"]  # no driver pod owns them here
    budgets = f"/apis/policy/v1/namespaces/{placed.namespace}/poddisruptionbudgets"
    try:
        with placed.operated("--node-watch", "--node-budgets"), placed.load():
            eventually(lambda: placed.client.request("GET", budgets)["items"], "the budget")
            placed.server.run_kubectl(*drain)
            after = placed.alone()
            placed.application.annotate(evacuate="false")
            eventually(lambda: not placed.client.request("GET", budgets)["items"], "the budget is removed")
    finally:
        placed.nodes.cordon(node, on=False)
    assert set(after.values()) == {other(node)}
    assert placed.fewest == 2
    placed.check_ledger()


@pytest.mark.soak
def test_executors_that_find_no_other_node_in_time_are_decommissioned(placed: Placed, two: dict[str, str]) -> None:
    """Together, before the node goes, and Spark makes others as soon as there is room."""
    placed.application.annotate(evacuate="true")
    nodes = sorted({*two.values(), *map(other, two.values())})
    try:
        with placed.operated("--node-watch", "--node-cordon-seconds", "30"), placed.load():
            for node in nodes:
                placed.nodes.cordon(node)
            eventually(lambda: not two.keys() & placed.running().keys(), "the executors leave", 120, placed.driver)
            failed = eventually(lambda: placed.events("EvacuationFailed"), "an Event", alive=placed.driver)
            for node in nodes:
                placed.nodes.cordon(node, on=False)
            after = placed.alone()
    finally:
        for node in nodes:
            placed.nodes.cordon(node, on=False)
        placed.application.annotate(evacuate="false")
    assert "was decommissioned at " in failed[0]
    assert not after.keys() & two.keys()
    placed.check_ledger()


def test_queueing_of_consecutive_actions(placed: Placed, two: dict[str, str]) -> None:
    """One at a time, in the order of their times; a restart in place is a move to the same node."""
    first, second = sorted(two)
    now = datetime.now(UTC)
    later, sooner = "00000000-placed-later", "11111111-placed-sooner"
    requests = [
        PlacementRequest(placement_id=later, created_at=now + timedelta(milliseconds=1), executor_id=second, destination_host="ANY_OTHER"),
        PlacementRequest(placement_id=sooner, created_at=now, executor_id=first, destination_host="LAST_SEEN"),
    ]
    placed.channel.requests.write({item.placement_id: item.to_json() for item in requests})
    in_place = placed.reaches(sooner, SUCCEEDED)
    assert placed.response(later).status in (ACCEPTED, IN_PROGRESS)
    assert (in_place.node, in_place.new_executor_id != first) == (two[first], True)
    moved = placed.reaches(later, SUCCEEDED)
    assert placed.alone() == {in_place.new_executor_id: two[first], moved.new_executor_id: other(two[second])}
    placed.batches(1)
    placed.check_ledger()


def test_an_expired_request_does_not_affect_the_running_executor(placed: Placed, two: dict[str, str]) -> None:
    executor = min(two)
    with placed.load():
        asked = placed.request(executor, "node-full", expiry_seconds=4)
        placed.reaches(asked, IN_PROGRESS)
        next_one = placed.request(max(two), "ANY_OTHER")
        placed.reaches(next_one, ACCEPTED)
        assert placed.response(asked).status is IN_PROGRESS, "whoever has to wait is told at once"
        withdraw_placement(placed.channel, next_one)
        response = placed.reaches(asked, FAILED)
        assert "withdrawn before it was begun" in placed.reaches(next_one, BAD_REQUEST).message
        assert placed.alone() == two
    assert "after 4 s" in response.message
    assert "Insufficient cpu" in response.message
    assert placed.fewest == 2
    placed.check_ledger()


def test_a_pod_that_the_api_server_refuses_is_not_asked_for(placed: Placed, two: dict[str, str]) -> None:
    """Since Spark 4.2 some refused pods end the application. The placement goes on once there is room."""
    with placed.full_quota(), placed.load():
        response = placed.reaches(placed.request(min(two), "ANY_OTHER", expiry_seconds=4), FAILED)
        assert "after 4 s: the API server takes no pod for it: " in response.message
        assert "exceeded quota: full" in response.message
        waits = placed.request(min(two), "ANY_OTHER")
        placed.reaches(waits, IN_PROGRESS)
        eventually(lambda: "stays until the API server takes a pod in its place: " in placed.response(waits).message, "it to wait")
        assert placed.alone() == two
    placed.reaches(waits, SUCCEEDED)
    assert "executor failures" not in placed.driver.log
    placed.batches(1)
    placed.check_ledger()


def test_executors_whose_time_is_over_are_decommissioned_together(placed: Placed, two: dict[str, str]) -> None:
    """Also one whose turn has not come; and what was asked for in vain does not stay."""
    first, second = sorted(two)
    until = datetime.now(UTC) + timedelta(seconds=6)
    with placed.load():
        asked = placed.request(first, "node-full", decommission_at=until)
        waits = placed.request(second, "node-full", decommission_at=until + timedelta(seconds=1))
        placed.reaches(asked, IN_PROGRESS)
        placed.reaches(waits, ACCEPTED)
        responses = [placed.reaches(each, FAILED) for each in (asked, waits)]
        placed.gone(first, second)
        after = placed.alone()
    for response, executor in zip(responses, (first, second), strict=True):
        assert response.decommissioned
        assert f"executor {executor} on {two[executor]} was decommissioned at " in response.message
        assert "before a new one was there" in response.message
    assert not after.keys() & two.keys()
    assert set(after.values()) <= {"node-1", "node-2"}
    placed.check_ledger()


@pytest.mark.soak
def test_an_executor_without_time_is_decommissioned_at_once(placed: Placed, two: dict[str, str]) -> None:
    executor = min(two)
    response = placed.reaches(placed.request(executor, "ANY_OTHER", decommission_at=datetime.now(UTC)), FAILED)
    assert response.decommissioned
    placed.gone(executor)
    assert executor not in placed.alone()
    placed.batches(1)
    placed.check_ledger()


@pytest.mark.soak
def test_an_executor_that_is_replaced_in_time_is_not_decommissioned(placed: Placed, two: dict[str, str]) -> None:
    executor, node = sorted(two.items())[0]
    until = datetime.now(UTC) + timedelta(minutes=3)
    response = placed.reaches(placed.request(executor, "ANY_OTHER", decommission_at=until), SUCCEEDED)
    assert (response.node, response.decommissioned) == (other(node), False)
    placed.alone()


@pytest.mark.soak
def test_an_api_server_that_refuses_for_a_while_leaves_nothing_over(placed: Placed, two: dict[str, str]) -> None:
    asked = placed.request(min(two), "node-full", expiry_seconds=8)
    placed.reaches(asked, IN_PROGRESS)
    eventually(lambda: len(placed.pods()) == 3, "the pod that was asked for", alive=placed.driver)
    with placed.without_rights():
        bad = placed.request("4711", "LAST_SEEN")
        time.sleep(3)
    assert "after 8 s" in placed.reaches(asked, FAILED).message
    assert "there is no executor 4711" in placed.reaches(bad, BAD_REQUEST).message
    assert placed.alone() == two
    placed.batches(1)
    placed.check_ledger()


def test_bad_requests(placed: Placed, two: dict[str, str]) -> None:
    executor, node = sorted(two.items())[0]
    asked = {
        placed.request("4711", "node-2"): f"there is no executor 4711 in run {placed.run_id}: there are {', '.join(sorted(two))}",
        placed.request(executor, node): "to restart it there, give LAST_SEEN",
        placed.request(executor, other(node), run_id="spark-gone"): "meant for run spark-gone",
    }
    for placement_id, told in asked.items():
        assert told in placed.reaches(placement_id, BAD_REQUEST).message
    odd = {"odd": "{", "old": json.dumps({"version": 1, "uuid": "old", "timestamp": "2026-01-01T00:00:00Z", "processorId": "driver"})}
    placed.channel.requests.write(odd)
    assert "not JSON" in placed.reaches("odd", BAD_REQUEST).message
    assert "'driver'" in placed.reaches("old", BAD_REQUEST).message
    assert placed.alone() == two


@pytest.mark.soak
class TestDestinations:
    def test_any_node_but_the_present_one(self, placed: Placed, two: dict[str, str]) -> None:
        executor, node = sorted(two.items())[0]
        assert placed.reaches(placed.request(executor, "ANY_OTHER"), SUCCEEDED).node == other(node)

    def test_a_node_selector(self, placed: Placed, two: dict[str, str]) -> None:
        response = placed.reaches(placed.request(min(two), "", node_selector={"pool": "fast"}), SUCCEEDED)
        assert response.node == "node-2"

    def test_a_node_selector_and_any_node_but_the_present_one(self, placed: Placed, two: dict[str, str]) -> None:
        executor, node = sorted(two.items())[0]
        pool = {"node-1": "fast", "node-2": "slow"}[node]
        assert placed.reaches(placed.request(executor, "ANY_OTHER", node_selector={"pool": pool}), SUCCEEDED).node == other(node)

    def test_forced_restart(self, placed: Placed, two: dict[str, str]) -> None:
        """For a node without room for two: the old executor ends first."""
        executor, node = sorted(two.items())[0]
        response = placed.reaches(placed.request(executor, "FORCE_RESTART_LAST_SEEN"), SUCCEEDED)
        assert (response.node, executor in placed.alone()) == (node, False)
        placed.batches(1)
        placed.check_ledger()


@pytest.mark.soak
class TestObstacles:
    """Whatever gets in the way: two executors run on, no pod is left over, and the answer is true."""

    @pytest.fixture(autouse=True)
    def _unharmed(self, placed: Placed, two: dict[str, str]) -> Iterator[None]:
        yield
        placed.alone()
        placed.batches(1)
        placed.check_ledger()

    def test_withdrawn(self, placed: Placed, two: dict[str, str]) -> None:
        placement_id = placed.request(min(two), "node-full")
        placed.reaches(placement_id, IN_PROGRESS)
        eventually(lambda: len(placed.pods()) == 3, "a pod that waits")
        withdraw_placement(placed.channel, placement_id)
        assert "it was withdrawn" in placed.reaches(placement_id, FAILED).message
        assert placed.alone() == two

    def test_removed(self, placed: Placed, two: dict[str, str]) -> None:
        placement_id = placed.request(min(two), "node-full")
        placed.reaches(placement_id, IN_PROGRESS)
        delete_placement(placed.channel, placement_id)
        placed.reaches(placed.request("4711", "LAST_SEEN"), BAD_REQUEST)  # the one after it, so the agent is done with it
        assert placed.alone() == two
        assert placed.response(placement_id) is None

    def test_a_node_that_starts_no_container(self, placed: Placed, two: dict[str, str]) -> None:
        executor, node = sorted(two.items())[0]
        with placed.nodes.starting_nothing(other(node)):
            response = placed.reaches(placed.request(executor, other(node), expiry_seconds=5), FAILED)
        assert "is Pending" in response.message
        assert placed.alone() == two

    def test_the_new_executor_dies_before_it_registers(self, placed: Placed, two: dict[str, str]) -> None:
        executor, node = sorted(two.items())[0]
        placement_id = placed.request(executor, other(node))
        new = eventually(lambda: placed.reaches(placement_id, IN_PROGRESS).new_executor_id, "a pod is asked for")
        eventually(lambda: placed.running().get(new), "its process")
        placed.nodes.kill(placed.pods()[new]["metadata"]["name"])
        response = placed.reaches(placement_id, FAILED)
        assert "has ended before it was there" in response.message
        assert executor in placed.alone()

    def test_the_old_executor_dies_meanwhile(self, placed: Placed, two: dict[str, str]) -> None:
        executor, node = sorted(two.items())[0]
        placement_id = placed.request(executor, other(node))
        eventually(lambda: placed.reaches(placement_id, IN_PROGRESS).new_executor_id, "a pod is asked for")
        placed.nodes.kill(placed.pods()[executor]["metadata"]["name"])
        response = placed.reaches(placement_id, SUCCEEDED)
        assert response.node == other(node)

    def test_an_executor_that_does_not_answer(self, placed: Placed, two: dict[str, str]) -> None:
        executor, node = sorted(two.items())[0]
        placed.nodes.freeze(placed.pods()[executor]["metadata"]["name"])
        response = placed.reaches(placed.request(executor, other(node)), SUCCEEDED)
        assert response.node == other(node)
        assert executor not in placed.alone()

    def test_the_destination_goes_away(self, placed: Placed, two: dict[str, str]) -> None:
        executor, node = sorted(two.items())[0]
        with placed.nodes.starting_nothing(other(node)):
            placement_id = placed.request(executor, other(node))
            new = eventually(lambda: placed.reaches(placement_id, IN_PROGRESS).new_executor_id, "a pod is asked for")
            eventually(lambda: placed.pods()[new]["spec"].get("nodeName"), "it is bound")
            placed.client.request("DELETE", f"/api/v1/namespaces/{placed.namespace}/pods/{placed.pods()[new]['metadata']['name']}")
            response = placed.reaches(placement_id, FAILED)
        assert "has ended before it was there" in response.message
        assert placed.alone() == two

    def test_a_cordoned_node(self, placed: Placed, two: dict[str, str]) -> None:
        executor, node = sorted(two.items())[0]
        placed.nodes.cordon(other(node))
        try:
            response = placed.reaches(placed.request(executor, other(node), expiry_seconds=4), FAILED)
        finally:
            placed.nodes.cordon(other(node), on=False)
        assert "unschedulable" in response.message

    def test_a_drain_wins(self, placed: Placed, two: dict[str, str]) -> None:
        """From its approval on: while it is only planned, which may be for days, executors can be moved."""
        drain_id = placed.drains.write("Stop", execution="AfterApproval")
        placed.drains.reaches(drain_id, "Acknowledged", reason="AwaitingApproval", driver=placed.driver)
        placement_id = placed.request(min(two), "node-full")
        placed.reaches(placement_id, IN_PROGRESS)
        placed.drains.approve(drain_id)
        assert f"drain {drain_id} has begun" in placed.reaches(placement_id, FAILED).message
        assert f"drain {drain_id} is under way" in placed.reaches(placed.request(min(two), "LAST_SEEN"), BAD_REQUEST).message
        placed.drains.reaches(drain_id, "Drained", driver=placed.driver)
        placed.drains.clean_up()
        assert placed.driver.wait() == 0
        placed.lose_driver()

    def test_a_plan_is_in_nobodys_way(self, placed: Placed, two: dict[str, str]) -> None:
        drain_id = placed.drains.write(execution="PlanOnly", stateLossPolicy="Accept")
        placed.drains.reaches(drain_id, "Acknowledged", reason="Planned", driver=placed.driver)
        executor, node = sorted(two.items())[0]
        placed.reaches(placed.request(executor, other(node)), SUCCEEDED)
        placed.drains.withdraw(drain_id)
        placed.drains.reaches(drain_id, "Withdrawn", driver=placed.driver)
        placed.drains.clean_up()


@pytest.mark.soak
class TestRecipes:
    """The scripts of examples/placements, as the page on executors has them."""

    def run(self, placed: Placed, script: str, *arguments: str) -> None:
        environment = placed.server.environment()
        environment["PATH"] = f"{Path(placed.server.kubectl).parent}:{environment['PATH']}"
        command = ["sh", str(ROOT / "examples/placements" / script), placed.namespace, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, (done.stdout, done.stderr)

    def test_rolling_restart(self, placed: Placed, two: dict[str, str]) -> None:
        with placed.operated(), placed.load():
            self.run(placed, "rolling-restart.sh", APPLICATION)
            after = placed.alone()
        assert not after.keys() & two.keys()
        assert sorted(after.values()) == sorted(two.values())
        assert placed.fewest == 2
        placed.check_ledger()

    def test_a_node_is_cleared(self, placed: Placed, two: dict[str, str]) -> None:
        node = min(two.values())
        with placed.operated(), placed.load():
            try:
                self.run(placed, "clear-node.sh", node)
            finally:
                placed.nodes.cordon(node, on=False)
            after = placed.alone()
        assert set(after.values()) == {other(node)}
        assert placed.fewest == 2
        placed.check_ledger()


@pytest.mark.soak
@pytest.mark.parametrize("when", ["reserved", "made", "registered"])
def test_the_driver_is_killed(placed: Placed, two: dict[str, str], when: str) -> None:
    """What was asked of a run ends with it; the next one says so, and has as many executors as its conf says."""
    executor, node = sorted(two.items())[0]
    placement_id = placed.request(executor, other(node))

    def there() -> bool:
        response = placed.response(placement_id)
        assert response is None or not response.status.finished, response
        if response is None or response.status is not IN_PROGRESS:
            return False
        return {"reserved": True, "made": bool(response.new_executor_id), "registered": bool(response.node)}[when]

    eventually(there, when, alive=placed.driver)
    placed.lose_driver()
    assert "was interrupted" in placed.reaches(placement_id, FAILED).message
    placed.alone()
    placed.batches(1)
    placed.check_ledger()
    executor, node = sorted(placed.alone().items())[0]
    placed.reaches(placed.request(executor, other(node)), SUCCEEDED)


@pytest.mark.soak
def test_twenty_in_a_row(placed: Placed, two: dict[str, str]) -> None:
    """No batch fails, each record comes out once, there are never too few executors, and nothing is left over."""
    with placed.load():
        for _ in range(20):
            executor, node = sorted(placed.alone().items())[0]
            assert placed.reaches(placed.request(executor, other(node)), SUCCEEDED).node == other(node)
        placed.alone()
    assert placed.fewest == 2
    placed.check_ledger()
