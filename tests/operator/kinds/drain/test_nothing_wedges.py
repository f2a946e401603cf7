"""What used to leave a drain without an end, or to end it with a lie."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from spark_drain_operator.clock import parse_time
from spark_drain_operator.engine.reconciler import Reconciler
from spark_drain_operator.kinds.drain import limits
from spark_drain_operator.kinds.drain.kind import DrainKind
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.applications import ApplicationObjects
from spark_drain_operator.storage.pods import PodName, Pods
from spark_drain_operator.storage.results import Results
from spark_drain_operator.storage.watch_cache import WatchCache
from spark_drain_store import DrainState, QueryReport
from spark_drain_store.channel import config_map_names
from spark_drain_store.configmap import MANAGED_BY
from spark_drain_store.drains import approve_notification
from spark_drain_store.kube_client import MERGE_PATCH, ApiError

from tests.operator.conftest import World, condition
from tests.operator.process import OperatorProcess
from tests.operator.scripted_kubeflow import BackgroundKubeflow, ScriptedApplication
from tests.support.apiserver import DRAINS, drain_body
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


def succeeded(body: dict[str, Any]) -> str:
    found = condition(body, "Succeeded")
    assert found is not None
    return str(found["reason"])


@pytest.mark.parametrize("state", [DrainState.FLUSHING, DrainState.REPORTING, DrainState.DRAINED])
def test_without_its_notification_nothing_is_scaled_down(world: World, state: DrainState) -> None:
    """Nothing holds the driver then: it may be reading again."""
    agent, drain_id = world.drain_at(DrainState.FLUSHING)
    agent.report(drain_id, DrainState.REPORTING)
    world.await_phase("Reporting")
    if state is DrainState.DRAINED:
        agent.drained(drain_id, executors="")  # and the operator waits for the executors
        world.await_condition("ExecutorsDrained", "ExecutorsUnaccounted")
    agent.channel.requests.write({drain_id: None})
    if state is not DrainState.DRAINED:
        agent.report(drain_id, state)
    ended = world.await_phase("Failed", seconds=20)
    assert succeeded(ended) == "NotificationRemovedTooLate"
    agent.drained(drain_id)
    assert world.untouched


def test_a_notification_that_is_removed_before_the_point_of_no_return_cancels(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.STOPPING)
    agent.channel.requests.write({drain_id: None})
    assert succeeded(world.await_phase("Cancelled", seconds=20)) == "NotificationRemoved"
    assert world.untouched


@pytest.mark.parametrize(
    ("spec", "change", "phase", "reason"),
    [
        ({"timeoutSeconds": 2}, {}, "TimedOut", "DeadlineExceeded"),
        ({}, {"cancel": True}, "Cancelled", "CancelRequested"),
    ],
    ids=["timeout", "cancel"],
)
def test_a_silent_agent_ends_in_a_bounded_time(world: World, spec: dict[str, Any], change: dict[str, Any], phase: str, reason: str) -> None:
    agent, _ = world.drain_at(DrainState.STOPPING, acknowledgeTimeoutSeconds=6, **spec)
    if change:
        world.patch_drain(spec=change)
    agent.await_withdrawn()
    stalled = world.await_condition("Stalled", "AgentNotResponding", seconds=20)
    assert stalled["status"] == "True"
    ended = world.await_phase(phase, seconds=20)
    assert succeeded(ended) == reason
    assert "has not answered for 6 s" in ended["status"]["message"]
    agent.await_no_notification()
    assert world.untouched


def test_a_silent_agent_does_not_keep_its_drain_from_being_deleted(world: World) -> None:
    agent, _ = world.drain_at(DrainState.STOPPING, acknowledgeTimeoutSeconds=3)
    world.delete_drain()
    eventually(world.drain_is_gone, "the drain is gone", 20)
    agent.await_no_notification()


def test_a_report_of_32000_partitions_leaves_room_for_its_result(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.REPORTING)
    offsets = json.dumps({"flights": {str(number): 10_000_000 + number for number in range(32_000)}})
    last = agent.last
    assert last is not None
    queries = (*last.queries, QueryReport(id="second", name="large", state="Drained", end_offsets={"KafkaV2[Subscribe[flights]]": offsets}))
    agent.last = replace(last, queries=queries)
    agent.report(drain_id, DrainState.DRAINED, queries=queries, executors_drained="1-2")
    with BackgroundKubeflow(world.application):
        world.await_phase("Drained")
    data = world.config_map("drain-result")["data"]
    assert json.loads(data["end-offsets.json"])["large"] == {"KafkaV2[Subscribe[flights]]": offsets}
    assert json.loads(data["report.json"])["state"] == "Drained"


def test_reports_of_earlier_drains_make_room_before_the_next(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.ACKNOWLEDGED)
    agent.report(drain_id, DrainState.FAILED)
    world.await_phase("Failed")
    agent.await_no_notification()
    assert set(agent.channel.reports.read().entries) == {drain_id}
    world.create_drain("second")
    agent.await_notification()
    eventually(lambda: not agent.channel.reports.read().entries, "the report of the drain before is removed")


def test_pods_that_end_slowly_do_not_change_the_verdict(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.REPORTING, timeoutSeconds=4, onTimeout="ForceStop")
    agent.drained(drain_id)
    world.application.await_suspend()
    world.await_condition("ScaledDown", "WaitingForPods")
    eventually(lambda: world.drain()["status"]["conditions"] and _age(world) > 6, "the deadline has passed", 30)
    assert world.drain()["status"]["phase"] == "ScalingDown"
    world.application.obey_suspend()
    assert succeeded(world.await_phase("Drained")) == "Drained"


def _age(world: World) -> float:
    return (datetime.now(UTC) - parse_time(world.drain()["status"]["startTime"])).total_seconds()


def test_a_new_drain_is_in_progress_for_kstatus_and_one_that_has_ended_stays_as_it_is(world: World) -> None:
    body = world.client.request("POST", DRAINS.format(world.namespace), body=drain_body("plain", ifNotRunning="Succeed"))
    assert body["status"] == {"observedGeneration": -1}
    ended = world.await_phase("NothingToDrain", "plain")
    with pytest.raises(ApiError, match="once the drain has ended"):
        world.patch_drain("plain", spec={"timeoutSeconds": 77})
    assert ended["status"]["observedGeneration"] == world.drain("plain")["metadata"]["generation"]


class RefusedResults(Results):
    """A quota, a webhook or a missing right."""

    def write(self, *_: object) -> None:
        raise ApiError(403, "Forbidden", "exceeded quota")


class RefusedPods(Pods):
    """The operator may not list executors."""

    def names(self, *_: object) -> tuple[PodName, ...]:
        raise ApiError(403, "Forbidden", "pods is forbidden")


@pytest.mark.parametrize("refused", ["results", "pods"])
def test_what_was_drained_in_time_is_drained_whatever_was_refused_meanwhile(api_server: Any, namespace: str, refused: str) -> None:
    world = World(api_server, namespace, OperatorProcess({}, "", log=None), ScriptedApplication(api_server.client, namespace))  # type: ignore[arg-type]
    agent = world.run_application()
    drain_id = world.create_drain(timeoutSeconds=3, acknowledgeTimeoutSeconds=1)
    look(world, forbidden=False)
    agent.report(drain_id, DrainState.REPORTING)
    look(world, forbidden=False)
    agent.drained(drain_id)
    cluster = Cluster.over(world.client)
    stand_in = {"results": RefusedResults(world.client)} if refused == "results" else {"pods": RefusedPods(world.client, WatchCache())}
    cluster = replace(cluster, **stand_in)
    reconciler = Reconciler(DrainKind(cluster, Settings()), cluster)
    for _ in range(3):  # the deadline passes, and the time in which an agent may answer
        with suppress(ApiError):
            reconciler.reconcile(namespace, "drain")
        with pytest.raises(ApiError):
            reconciler.reconcile(namespace, "drain")
        time.sleep(2)
        reconciler.tell_failure(namespace, "drain", "Forbidden")
        assert condition(world.drain(), "Stalled")["reason"] == "ReconcileFailed"  # type: ignore[index]
    look(world, forbidden=False)
    look(world, forbidden=False)
    assert world.application.suspended


class Forbidden(ApplicationObjects):
    """The operator may not read applications (any more)."""

    def get(self, *_: object, **_options: object) -> dict[str, Any] | None:
        raise ApiError(403, "Forbidden", "sparkapplications is forbidden")


def look(world: World, *, forbidden: bool) -> float | None:
    cluster = Cluster.over(world.client)
    if forbidden:
        cluster = replace(cluster, applications=Forbidden(world.client, WatchCache()))
    return Reconciler(DrainKind(cluster, Settings()), cluster).reconcile(world.namespace, "drain")


def test_a_failure_of_seconds_at_the_deadline_keeps_nothing_from_being_stopped_by_force(api_server: Any, namespace: str) -> None:
    world = World(api_server, namespace, OperatorProcess({}, "", log=None), ScriptedApplication(api_server.client, namespace))  # type: ignore[arg-type]
    agent = world.run_application()
    drain_id = world.create_drain(timeoutSeconds=1, onTimeout="ForceStop")
    look(world, forbidden=False)
    agent.report(drain_id, DrainState.STOPPING)
    look(world, forbidden=False)
    time.sleep(2)
    cluster = Cluster.over(world.client)
    Reconciler(DrainKind(cluster, Settings()), cluster).tell_failure(namespace, "drain", "Forbidden")
    for _ in range(2):
        look(world, forbidden=False)
    assert world.application.suspended


def test_an_application_that_cannot_be_read_holds_nothing_for_ever(api_server: Any, namespace: str) -> None:
    world = World(api_server, namespace, OperatorProcess({}, "", log=None), ScriptedApplication(api_server.client, namespace))  # type: ignore[arg-type]
    agent = world.run_application()
    drain_id = world.create_drain(acknowledgeTimeoutSeconds=1)
    look(world, forbidden=True)
    stalled = condition(world.drain(), "Stalled")
    assert stalled is not None
    assert (stalled["status"], stalled["reason"]) == ("True", "ApplicationUnreadable")
    look(world, forbidden=False)
    agent.report(drain_id, DrainState.ACKNOWLEDGED)
    look(world, forbidden=True)
    assert world.drain()["status"]["phase"] != "Abandoned"
    world.delete_drain()

    def passes_until_gone() -> bool:
        if not world.drain_is_gone():
            look(world, forbidden=True)
        return world.drain_is_gone()

    eventually(passes_until_gone, "the drain is gone", 20)
    assert not agent.notifications()
    assert world.untouched


def test_a_complete_drain_is_deleted_whose_application_cannot_be_read(
    api_server: Any, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(api_server, namespace, OperatorProcess({}, "", log=None), ScriptedApplication(api_server.client, namespace))  # type: ignore[arg-type]
    agent = world.run_application()
    drain_id = world.create_drain()
    look(world, forbidden=False)
    agent.drain(drain_id)
    look(world, forbidden=False)
    world.patch_drain(metadata={"finalizers": [*world.drain()["metadata"]["finalizers"], "example.com/kept"]})
    world.delete_drain()
    for _ in range(2):
        look(world, forbidden=True)
    assert condition(world.drain(), "Stalled")["reason"] == "ApplicationUnreadable"  # type: ignore[index]
    assert agent.notifications(), "the right may come back"
    monkeypatch.setattr(limits, "PATIENCE_SECONDS", 0)

    def passes_until_ended() -> bool:
        look(world, forbidden=True)
        return "completionTime" in world.drain()["status"]

    eventually(passes_until_ended, "the drain ends", 20)
    ended = condition(world.drain(), "Succeeded")
    assert ended is not None
    assert (world.drain()["status"]["phase"], ended["reason"]) == ("Failed", "ScaleDownIncomplete")
    assert "sparkapplications is forbidden" in ended["message"]
    assert world.drain()["metadata"]["finalizers"] == ["example.com/kept"]
    assert not agent.notifications()
    world.patch_drain(metadata={"finalizers": None})


def test_a_drain_is_deleted_whose_application_cannot_be_read_to_be_stopped_by_force(api_server: Any, namespace: str) -> None:
    world = World(api_server, namespace, OperatorProcess({}, "", log=None), ScriptedApplication(api_server.client, namespace))  # type: ignore[arg-type]
    agent = world.run_application()
    drain_id = world.create_drain(acknowledgeTimeoutSeconds=1, timeoutSeconds=1, onTimeout="ForceStop")
    look(world, forbidden=False)
    agent.report(drain_id, DrainState.STOPPING)
    look(world, forbidden=False)
    time.sleep(2)
    for _ in range(3):
        look(world, forbidden=True)
    assert "completionTime" not in world.drain()["status"]
    world.delete_drain()

    def passes_until_gone() -> bool:
        if not world.drain_is_gone():
            look(world, forbidden=True)
        return world.drain_is_gone()

    eventually(passes_until_gone, "the drain is gone", 20)
    assert world.untouched


def test_results_are_not_watched(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.REPORTING)
    with BackgroundKubeflow(world.application):
        agent.drained(drain_id)
        world.await_phase("Drained")
    labels = ",".join(f"{name}={value}" for name, value in MANAGED_BY.items())
    query = {"labelSelector": f"{labels},app.kubernetes.io/component!=result"}
    watched = world.client.request("GET", f"/api/v1/namespaces/{world.namespace}/configmaps", query=query)["items"]
    assert {item["metadata"]["name"] for item in watched} == set(config_map_names("app"))


def test_a_foreign_uid_on_a_drain_in_progress_ends_nothing(world: World) -> None:
    """Somebody applied an exported manifest over it: it is no copy, for its status says what it has begun."""
    agent, drain_id = world.drain_at(DrainState.FLUSHING)
    world.patch_drain(metadata={"annotations": {"sparkdrain.io/uid": "that-of-another"}}, spec={"timeoutSeconds": 3000})
    eventually(lambda: world.drain()["status"]["observedGeneration"] == 2, what="the change is seen")
    assert world.drain()["status"]["phase"] == "Flushing"
    agent.drained(drain_id)
    world.application.await_suspend()


def test_without_both_config_maps_the_point_of_no_return_is_remembered(world: World) -> None:
    """Somebody has deleted them; the agent flushes on."""
    world.drain_at(DrainState.FLUSHING)
    world.delete_config_maps()
    world.patch_drain(spec={"timeoutSeconds": 3000})
    assert succeeded(world.await_phase("Failed", seconds=20)) == "NotificationRemovedTooLate"
    assert world.untouched


def test_an_application_that_is_resumed_without_its_request_is_not_suspended_again(own_world: World) -> None:
    """Somebody has removed the request while the driver was told to end: nothing holds it."""
    world = own_world
    world.operator.start()
    agent, drain_id = world.drained()
    world.application.await_suspend()
    eventually(lambda: "scaleDown" in world.drain()["status"], what="the request to scale down is remembered")
    world.operator.kill()
    agent.channel.requests.write({drain_id: None})
    world.application.resume()
    world.operator.start()
    scaled = condition(world.await_phase("Drained"), "ScaledDown")
    assert scaled is not None
    assert scaled["reason"] == "ApplicationResumed"
    assert not world.application.suspended


@pytest.mark.parametrize(
    ("state", "ending"),
    [(DrainState.STOPPING, ("Cancelled", "NotificationRemoved")), (DrainState.FLUSHING, ("Failed", "NotificationRemovedTooLate"))],
)
def test_nothing_is_stopped_by_force_without_its_request(own_world: World, state: DrainState, ending: tuple[str, str]) -> None:
    """Somebody has removed it, and the deadline passes, while the operator is away."""
    world = own_world
    world.operator.start()
    agent, drain_id = world.drain_at(state, timeoutSeconds=3, onTimeout="ForceStop")
    world.operator.kill()
    agent.channel.requests.write({drain_id: None})
    time.sleep(3)
    world.operator.start()
    phase, reason = ending
    assert succeeded(world.await_phase(phase)) == reason
    assert world.untouched


def test_a_complete_drain_that_keeps_its_application_needs_no_request(world: World) -> None:
    agent, drain_id = world.complete_without_result(afterDrain="Keep")
    agent.channel.requests.write({drain_id: None})
    world.free_result_name()
    world.await_phase("Drained")


def test_without_its_report_a_drain_goes_on_in_the_next_run(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.FLUSHING, runId="spark-one")
    agent.channel.reports.write({drain_id: None})
    uid = world.application.restart("spark-two")
    eventually(lambda: agent.notifications()[drain_id].run_id == "spark-two", what="the next run is asked")
    assert world.drain()["status"]["phase"] == "Flushing"
    agent.restarted("spark-two", uid)
    agent.drain(drain_id)
    world.application.obey_suspend()
    world.await_phase("Drained")


def test_an_unreadable_report_of_an_application_that_has_ended_is_not_nothing_to_drain(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain(ifNotRunning="Succeed")
    agent.await_notification()
    agent.channel.reports.write({drain_id: "garbage"})
    world.await_condition("Stalled", "MalformedReport")
    world.application.set_state("COMPLETED")
    world.application.end_pods()
    assert succeeded(world.await_phase("Failed")) == "ApplicationEnded"


def test_a_lost_report_of_an_agent_that_had_answered_is_not_nothing_to_drain(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.STOPPING, ifNotRunning="Succeed")
    agent.channel.reports.write({drain_id: None})
    world.application.set_state("COMPLETED")
    world.application.end_pods()
    assert succeeded(world.await_phase("Failed")) == "ApplicationEnded"


def test_an_unreadable_report_is_taken_for_one_past_the_point_of_no_return(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.STOPPING, runId="spark-one")
    agent.channel.reports.write({drain_id: "garbage"})
    world.await_condition("Stalled", "MalformedReport")
    world.application.restart("spark-two")
    eventually(lambda: agent.notifications()[drain_id].run_id == "spark-two", what="the next run is asked")
    agent.channel.requests.write({drain_id: None})
    assert succeeded(world.await_phase("Failed")) == "NotificationRemovedTooLate"


@pytest.mark.parametrize("execution", ["Immediate", "AfterApproval"])
def test_an_application_that_was_suspended_before_anything_was_touched_is_nothing_to_drain(world: World, execution: str) -> None:
    """A GitOps sync that drains first would fail otherwise."""
    phase = "AwaitingApproval" if execution == "AfterApproval" else "Acknowledged"
    world.drain_at(DrainState.ACKNOWLEDGED, phase, execution=execution, ifNotRunning="Succeed")
    world.application.suspend()
    world.application.set_state("SUSPENDED")
    world.application.end_pods()
    world.await_phase("NothingToDrain")


def test_a_complete_drain_waits_for_no_report_of_an_application_that_has_ended(world: World) -> None:
    agent, drain_id = world.complete_without_result()
    uid = world.application.restart("spark-two")
    agent.restarted("spark-two", uid)
    agent.report(drain_id, DrainState.REPORTING)
    world.application.set_state("FAILED")
    world.application.end_pods()
    world.free_result_name()
    world.application.obey_suspend()
    world.await_phase("Drained")


def test_what_a_driver_has_done_that_was_seen_after_the_final_report_is_not_known(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain()
    agent.await_notification()
    agent.report(drain_id, DrainState.REPORTING)
    world.await_phase("Reporting")
    world.application.restart("spark-two")
    agent.drained(drain_id)
    world.await_condition("ExecutorsDrained", "DriverUnconfirmed")
    world.application.set_state("COMPLETED")
    world.application.end_pods()
    assert succeeded(world.await_phase("Failed")) == "ApplicationEnded"


@pytest.mark.parametrize("left", [None, "garbage"], ids=["deleted", "garbage"])
@pytest.mark.parametrize("deleted", [False, True], ids=["cancel", "delete"])
def test_without_its_report_a_drain_past_the_point_of_no_return_is_not_cancelled(world: World, left: str | None, deleted: bool) -> None:
    agent, drain_id = world.drain_at(DrainState.FLUSHING, acknowledgeTimeoutSeconds=2)
    agent.channel.reports.write({drain_id: left})
    if deleted:
        world.delete_drain()
    else:
        world.patch_drain(spec={"cancel": True})
    eventually(lambda: world.drain()["status"].get("withdrawal", {}).get("reason") == "WithdrawalTooLate", what="it is too late")
    assert world.drain()["status"]["phase"] == "Flushing"
    agent.drained(drain_id)
    world.application.obey_suspend()
    if deleted:
        eventually(world.drain_is_gone, what="the drain runs to its end")
    else:
        world.await_phase("Drained")


def test_without_its_report_a_drain_past_the_point_of_no_return_is_not_called_nothing_to_drain(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.FLUSHING, ifNotRunning="Succeed")
    agent.channel.reports.write({drain_id: None})
    world.application.set_state("COMPLETED")
    world.application.end_pods()
    assert succeeded(world.await_phase("Failed")) == "ApplicationEnded"


def test_a_complete_drain_that_is_suspended_needs_its_config_maps_no_more(world: World) -> None:
    world.drained()
    world.application.await_suspend()
    world.application.set_state("SUSPENDED")
    world.await_condition("ScaledDown", "WaitingForPods")
    world.delete_config_maps()
    world.application.end_pods()
    world.await_phase("Drained")


@pytest.mark.parametrize(
    "written",
    [
        {"outcome": {"phase": "Done", "reason": "x", "message": "y"}},
        {"withdrawal": {"reason": "x"}},
        {"startTime": "0000-01-01T10:00:00Z"},
        {"startTime": "9999-12-31T23:59:59Z"},
    ],
    ids=str,
)
def test_a_status_that_was_written_by_hand_holds_nothing(world: World, written: dict[str, Any]) -> None:
    agent, drain_id = world.drain_at(DrainState.STOPPING)
    world.patch_status(**written)
    agent.drain(drain_id)
    world.application.obey_suspend()
    world.await_phase("Drained")
    assert "defect" not in world.operator.log()


def test_a_time_at_the_end_of_all_years_holds_no_scaling_down(world: World) -> None:
    world.drained()
    world.application.await_suspend()
    world.await_condition("ScaledDown", "WaitingForPods")
    world.patch_status(scaleDown={"requestedAt": "9999-12-31T23:59:59Z"})
    world.application.obey_suspend()
    world.await_phase("Drained")
    assert "defect" not in world.operator.log()


def test_what_was_answered_and_lost_is_looked_at_now_and_then_and_has_a_deadline(own_world: World) -> None:
    """The condition that says that the agent has answered was lost too."""
    world = own_world
    world.operator.start()
    agent = world.run_application()
    world.create_drain(acknowledgeTimeoutSeconds=2, timeoutSeconds=8)
    agent.await_notification()
    world.patch_status(progress={"queries": "0/1"})
    world.patch_drain(metadata={"labels": {"any": "change"}})
    eventually(lambda: "startTime" in world.drain()["status"], what="its deadline is set")
    before = len(world.requests)
    time.sleep(5)
    assert len(world.requests) - before < 50
    assert succeeded(world.await_phase("TimedOut")) == "DeadlineExceeded"


def test_an_approved_drain_whose_agent_is_gone_does_not_say_that_it_awaits_approval(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.ACKNOWLEDGED, "Acknowledged", execution="AfterApproval", timeoutSeconds=3)
    agent.report(drain_id, DrainState.ACKNOWLEDGED, reason="AwaitingApproval", message="planned; waits for approval")
    world.await_phase("AwaitingApproval")
    world.patch_drain(spec={"approved": True})
    eventually(lambda: world.drain()["status"]["message"].startswith("approved; the agent has not begun"), what="it is told")
    ended = "the agent was at Acknowledged: approved; the agent has not begun"
    eventually(lambda: ended in world.drain()["status"].get("withdrawal", {}).get("message", ""), what="the timeout is told")


@pytest.mark.parametrize("back", [False, True], ids=["lost", "written again"])
def test_a_drain_that_nobody_has_approved_has_no_deadline(world: World, back: bool) -> None:
    """Its report is lost."""
    agent, drain_id = world.drain_at(
        DrainState.ACKNOWLEDGED, "AwaitingApproval", execution="AfterApproval", onTimeout="ForceStop", timeoutSeconds=1
    )
    agent.channel.reports.write({drain_id: None})
    eventually(lambda: "can no longer be read" in world.drain()["status"]["message"], what="it is missed")
    if back:
        agent.report(drain_id, DrainState.ACKNOWLEDGED, reason="AwaitingApproval")
        eventually(lambda: "set spec.approved" in world.drain()["status"]["message"], what="it is read")
    time.sleep(2)
    status = world.drain()["status"]
    assert "startTime" not in status
    assert status["phase"] == "AwaitingApproval"
    assert world.untouched


@contextmanager
def webhook_away(world: World, resource: str, group: str = "", version: str = "v1") -> Iterator[None]:
    """Let the API server ask a webhook that does not answer about each change of a resource: it says 500 then."""
    hooks, name = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", f"away-{world.namespace}"
    rule = {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE"], "resources": [resource]}
    hook = {
        "name": "away.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"url": "https://127.0.0.1:1/away"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}},
        "rules": [rule],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    world.client.request("POST", hooks, body={**kind, "metadata": {"name": name}, "webhooks": [hook]})
    time.sleep(3)  # until it is in force
    try:
        yield
    finally:
        world.client.request("DELETE", f"{hooks}/{name}")


@pytest.mark.parametrize("policy", ["Fail", "ForceStop"])
@pytest.mark.parametrize("repeats", [False, True], ids=["no driver yet", "the next run repeats it"])
def test_what_was_drained_in_time_waits_for_the_next_run_of_a_driver_that_is_lost(world: World, policy: str, repeats: bool) -> None:
    """It is lost between the agent's last word and the operator's look."""
    agent, drain_id = world.drain_at(DrainState.REPORTING, timeoutSeconds=8, onTimeout=policy)
    world.application.set_state("FAILING")
    world.application.end_pods()
    world.application.set_state("PENDING_RERUN")
    agent.drained(drain_id)
    world.await_condition("ExecutorsDrained", "DriverUnconfirmed")
    if repeats:
        agent.restarted("spark-two", world.application.start("spark-two"))
        agent.report(drain_id, DrainState.REPORTING)
    time.sleep(8)
    assert world.drain()["status"]["phase"] == "Reporting"
    if not repeats:
        agent.restarted("spark-two", world.application.start("spark-two"))
    agent.drained(drain_id)
    world.application.obey_suspend()
    world.await_phase("Drained")


def test_a_webhook_that_is_away_is_told_of_and_holds_no_drain(world: World) -> None:
    world.drain_at(DrainState.STOPPING, acknowledgeTimeoutSeconds=2)
    with webhook_away(world, "configmaps"):
        world.patch_drain(spec={"cancel": True})
        assert "failed calling webhook" in world.await_condition("Stalled", "ReconcileFailed")["message"]
        assert succeeded(world.await_phase("Cancelled")) == "CancelRequested"
    assert world.untouched


def test_a_webhook_of_applications_that_is_away_is_told_of(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.REPORTING)
    with webhook_away(world, "sparkapplications", "sparkoperator.k8s.io", "v1beta2"):
        agent.drained(drain_id)
        assert "failed calling webhook" in world.await_condition("Stalled", "ReconcileFailed")["message"]
        eventually(lambda: ("Warning", "ReconcileFailed") in world.events(), "the Event of it")
    world.application.obey_suspend()
    world.await_phase("Drained")


@pytest.mark.parametrize("deleted", [False, True], ids=["", "deleted"])
def test_a_forced_stop_whose_suspension_is_refused_is_tried_again(world: World, deleted: bool) -> None:
    world.drain_at(DrainState.FLUSHING, timeoutSeconds=2, onTimeout="ForceStop", acknowledgeTimeoutSeconds=2)
    with webhook_away(world, "sparkapplications", "sparkoperator.k8s.io", "v1beta2"):
        assert "failed calling webhook" in world.await_condition("Stalled", "ReconcileFailed")["message"]
        if deleted:
            world.delete_drain()
            eventually(world.drain_is_gone, "the drain is gone", 60)
        else:
            time.sleep(3)
            assert "completionTime" not in world.drain()["status"]
    if not deleted:
        world.application.obey_suspend()
        world.await_phase("ForceStopped")


@pytest.mark.parametrize("left", [None, "garbage"], ids=["lost", "malformed"])
def test_a_drain_that_is_approved_without_its_report_goes_on(world: World, left: str | None) -> None:
    """The agent waits for the approval, and writes no other report until then; the time until the approval does not count."""
    agent, drain_id = world.drain_at(
        DrainState.ACKNOWLEDGED, "AwaitingApproval", execution="AfterApproval", onTimeout="ForceStop", timeoutSeconds=5
    )
    agent.channel.reports.write({drain_id: left})
    eventually(lambda: "can no longer be read" in world.drain()["status"]["message"], what="it is missed")
    time.sleep(5)
    assert "startTime" not in world.drain()["status"]
    world.patch_drain(spec={"approved": True})
    eventually(lambda: agent.notifications()[drain_id].approved, what="the agent is told")
    deadline = agent.notifications()[drain_id].deadline
    assert deadline is not None
    assert (deadline - datetime.now(UTC)).total_seconds() > 1
    agent.drain(drain_id)
    world.application.obey_suspend()
    world.await_phase("Drained")


def test_an_approval_by_the_command_is_not_taken_back(world: World) -> None:
    agent, drain_id = world.awaiting_approval()
    approve_notification(agent.channel, drain_id)
    agent.report(drain_id, DrainState.STOPPING)
    world.await_phase("Stopping")
    eventually(lambda: agent.notifications()[drain_id].deadline, what="the deadline is told")
    assert agent.notifications()[drain_id].approved


def test_a_drain_that_was_ended_by_hand_leaves_no_request(world: World) -> None:
    """Its request would reject every later drain of the application."""
    agent, _ = world.drain_at(DrainState.ACKNOWLEDGED)
    ended = {"type": "Finished", "status": "True", "reason": "x", "message": "y", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    world.patch_status(conditions=[ended])
    world.patch_drain(metadata={"labels": {"any": "change"}})
    world.delete_drain()
    agent.await_no_notification()
    eventually(world.drain_is_gone, "the drain is gone")


def test_pods_of_the_next_application_of_the_name_are_not_waited_for(own_world: World) -> None:
    world = own_world
    world.operator.start()
    world.drained(afterDrain="Delete")
    eventually(lambda: not world.application.exists, what="it is deleted")
    eventually(lambda: "scaleDown" in world.drain()["status"], what="the request to scale down is remembered")
    world.operator.kill()
    world.application.end_pods()
    world.application.create().start("spark-two")
    world.operator.start()
    world.await_phase("Drained")
    assert not world.application.suspended


def test_config_maps_of_an_application_that_is_gone_are_not_used(world: World) -> None:
    """The garbage collector would take a drain's request away in the middle of it."""
    agent = world.run_application()
    first = world.create_drain("first", execution="PlanOnly")
    agent.await_notification()
    agent.report(first, DrainState.ACKNOWLEDGED, reason="Planned")
    world.await_phase("Planned", "first")
    owner = ScriptedApplication(world.client, world.namespace, "other").create().body()
    reference = {field: owner[field] for field in ("apiVersion", "kind")} | {field: owner["metadata"][field] for field in ("name", "uid")}
    for name in config_map_names("app"):
        path = f"/api/v1/namespaces/{world.namespace}/configmaps/{name}"
        world.client.request("PATCH", path, body={"metadata": {"ownerReferences": [reference]}}, content_type=MERGE_PATCH)
    world.create_drain("second")
    message = world.await_condition("Accepted", "ConfigMapsOfAnother", "second")["message"]
    assert all(name in message for name in config_map_names("app"))
    assert not agent.notifications()
    world.delete_config_maps()  # as the garbage collector does
    agent.await_notification()
