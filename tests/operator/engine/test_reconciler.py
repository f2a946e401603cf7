"""The engine brings forward any kind that says what `Kind` asks for; here one that knows neither applications nor messages."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest
from spark_drain_operator.engine.conditions import ACCEPTED, FINISHED, RECONCILING, STALLED, SUCCEEDED, Condition, Conditions
from spark_drain_operator.engine.events import Event, events_of
from spark_drain_operator.engine.kind import InvalidSpecError, Kind
from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting, ended
from spark_drain_operator.engine.reconciler import FORCE_DELETE, Reconciler
from spark_drain_operator.engine.status import BasePhase, Ending, Status
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.own_objects import GROUP, UID, Resource
from spark_drain_store.kube_client import MERGE_PATCH, ApiError

from tests.support.apiserver import DRAINS, ApiServer, drain_body
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver

TYPES = (ACCEPTED, SUCCEEDED, FINISHED, RECONCILING, STALLED)


class Phase(BasePhase):
    PENDING = "Pending"
    DONE = "Planned"
    REFUSED = "Rejected"

    @property
    def successful(self) -> bool:
        return self is Phase.DONE


@dataclass(frozen=True)
class ErrandSpec:
    run_id: str
    ttl: int | None


@dataclass(kw_only=True)
class ErrandStatus(Status):
    phase: BasePhase = Phase.PENDING
    conditions: Conditions = field(default_factory=lambda: Conditions(TYPES))

    def as_object(self) -> dict[str, Any]:
        outcome = {"outcome": self.outcome.as_object()} if self.outcome else {}
        conditions = [condition.as_object() for condition in self.conditions]
        return {"phase": str(self.phase), "message": self.message, "conditions": conditions, **outcome}


@dataclass
class Errands(Kind[ErrandSpec, ErrandStatus, ErrandStatus]):
    """Errands wait for a word of the test; a run id of ``no`` is inadmissible, one of ``what`` cannot be read."""

    word: bool = False
    sent: bool = False
    forgotten: list[str] = field(default_factory=list)
    uids: list[str] = field(default_factory=list)
    patience_over: bool = False
    had_begun: bool = False
    refuses_to_forget: bool = False
    meanwhile: Callable[[], None] | None = None

    resource = Resource("PipelineDrain", "pipelinedrains", f"{GROUP}/errand", ())
    rejected = Phase.REFUSED

    def parse(self, spec: Mapping[str, Any]) -> ErrandSpec:
        if spec["runId"] == "what":
            raise InvalidSpecError("runId is 'what'")
        return ErrandSpec(spec["runId"], spec.get("ttlSecondsAfterFinished"))

    def read_status(self, body: Mapping[str, Any], now: datetime) -> ErrandStatus:
        status = body.get("status") or {}
        return ErrandStatus(
            generation=body["metadata"]["generation"],
            now=now,
            phase=Phase(status.get("phase", "Pending")),
            conditions=Conditions(TYPES, (Condition.from_object(item, now) for item in status.get("conditions") or [])),
            outcome=Ending.from_object(status.get("outcome"), Phase),
        )

    def inadmissible(self, spec: ErrandSpec) -> Ending | None:
        return Ending(Phase.REFUSED, "NotServed", "no") if spec.run_id == "no" else None

    def overdue(self, body: Mapping[str, Any], spec: ErrandSpec, status: ErrandStatus) -> Ending | None:
        return Ending(Phase.REFUSED, "Waited", "waited long enough") if self.patience_over else None

    def observe(self, body: dict[str, Any], spec: ErrandSpec, status: ErrandStatus) -> ErrandStatus:
        return status

    def steps(self, current: ErrandStatus) -> Iterable[Callable[[ErrandStatus], Outcome]]:
        return (lambda _: DONE, self.send, lambda _: ended(Phase.DONE, "Delivered", "delivered"))

    def send(self, _: ErrandStatus) -> Outcome:
        self.sent = True
        if self.meanwhile is not None:
            self.meanwhile()
        return DONE if self.word else Waiting(7.0, "waiting for a word")

    def was_begun(self, status: ErrandStatus) -> bool:
        return self.had_begun

    def begun(self, current: ErrandStatus) -> bool:
        return self.sent

    def stored(self, current: ErrandStatus, body: dict[str, Any]) -> None:
        pass

    def settled(self, current: ErrandStatus, ending: Ending) -> bool:
        return False

    def mark(self, current: ErrandStatus, message: str, *, ends: bool) -> None:
        current.set(ACCEPTED, "True", "Accepted", message)

    def seconds_to_limit(self, current: ErrandStatus) -> float | None:
        return 5.0

    def forget(self, body: Mapping[str, Any]) -> None:
        if self.refuses_to_forget:
            raise ApiError(403, "Forbidden", "not yours")
        self.forgotten.append(body["metadata"]["name"])
        self.uids.append(body["metadata"]["uid"])

    def conclude(self, status: ErrandStatus, ending: Ending) -> None:
        pass

    def events(self, before: ErrandStatus, after: ErrandStatus) -> list[Event]:
        return events_of(before, after, ())


@dataclass
class Desk:
    """One errand, and an engine that serves it when it is told to."""

    server: ApiServer
    namespace: str
    errands: Errands

    def ask(self, run_id: str, **spec: Any) -> None:
        self.server.client.request("POST", DRAINS.format(self.namespace), body=drain_body("errand", runId=run_id, **spec))

    def look(self) -> float | None:
        cluster = Cluster.over(self.server.client)
        return Reconciler(self.errands, cluster).reconcile(self.namespace, "errand")

    @property
    def path(self) -> str:
        return f"{DRAINS.format(self.namespace)}/errand"

    @property
    def body(self) -> dict[str, Any]:
        return self.server.client.request("GET", self.path)

    @property
    def conditions(self) -> dict[str, tuple[str, str]]:
        return {item["type"]: (item["status"], item["reason"]) for item in self.body["status"]["conditions"]}

    def tell(self, problem: str) -> None:
        Reconciler(self.errands, Cluster.over(self.server.client)).tell_failure(self.namespace, "errand", problem)

    def events(self) -> list[str]:
        query = {"fieldSelector": "involvedObject.name=errand"}
        items = self.server.client.request("GET", f"/api/v1/namespaces/{self.namespace}/events", query=query)["items"]
        return [item["reason"] for item in sorted(items, key=lambda item: str(item["eventTime"]))]

    def lose(self) -> None:
        """Delete it whatever holds it."""
        self.server.client.request("PATCH", self.path, body={"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
        self.server.client.request("DELETE", self.path)

    def gone(self) -> bool:
        try:
            return not self.body
        except ApiError as error:
            return error.status == 404


@pytest.fixture
def desk(api_server: ApiServer, namespace: str) -> Desk:
    return Desk(api_server, namespace, Errands())


def test_another_kind_goes_from_its_first_step_to_its_end(desk: Desk) -> None:
    desk.ask("one", ttlSecondsAfterFinished=600)
    assert desk.look() == 5.0  # the limit comes before the step's own time
    assert desk.body["metadata"]["finalizers"] == [f"{GROUP}/errand"]
    assert desk.conditions[SUCCEEDED] == ("Unknown", "Pending")
    assert desk.body["status"]["message"] == "waiting for a word"
    version = desk.body["metadata"]["resourceVersion"]
    desk.look()
    assert desk.body["metadata"]["resourceVersion"] == version, "a pass without news writes nothing"
    desk.errands.word = True
    assert desk.look() == 0.0
    assert not desk.errands.forgotten, "decided first"
    assert (desk.look() or 0) > 500
    assert desk.errands.forgotten == ["errand"]
    assert desk.conditions[FINISHED] == ("True", "Planned")
    assert desk.conditions[SUCCEEDED] == ("True", "Delivered")
    assert not desk.body["metadata"].get("finalizers")
    eventually(lambda: desk.events() == ["Accepted", "Planned"], "both Events, in order", 10)


@pytest.mark.parametrize(("run_id", "reason"), [("no", "NotServed"), ("what", "InvalidSpec")])
def test_what_is_refused_is_never_held(desk: Desk, run_id: str, reason: str) -> None:
    desk.ask(run_id)
    assert desk.look() is None
    assert desk.conditions[SUCCEEDED] == ("False", reason)
    assert not desk.body["metadata"].get("finalizers")
    assert not desk.errands.sent


@pytest.mark.parametrize(("run_id", "stalled"), [("no", ("False", "NotStalled")), ("what", ("True", "InvalidSpec"))])
def test_what_was_begun_is_not_refused_any_more(desk: Desk, run_id: str, stalled: tuple[str, str]) -> None:
    """An operator with other settings, or another definition, has taken over."""
    desk.errands.had_begun = True
    desk.ask(run_id)
    desk.look()
    assert desk.conditions[FINISHED] == ("False", "InProgress")
    assert desk.conditions[STALLED] == stalled


def test_what_was_begun_and_cannot_be_read_leaves_nothing_behind_when_it_is_deleted(desk: Desk) -> None:
    desk.errands.had_begun = True
    desk.ask("what")
    desk.server.client.request("PATCH", desk.path, body={"metadata": {"finalizers": [f"{GROUP}/errand"]}}, content_type=MERGE_PATCH)
    desk.server.client.request("DELETE", desk.path)
    desk.look()
    assert desk.errands.forgotten == ["errand"]
    eventually(desk.gone, "the object is gone", 10)


def test_what_is_refused_leaves_nothing_behind(desk: Desk) -> None:
    """The pass before wrote something, and was killed before it said so."""
    desk.ask("no")
    desk.server.client.request("PATCH", desk.path, body={"metadata": {"finalizers": [f"{GROUP}/errand"]}}, content_type=MERGE_PATCH)
    desk.look()
    assert desk.conditions[SUCCEEDED] == ("False", "NotServed")
    assert desk.errands.forgotten == ["errand"]


def test_a_finished_object_is_deleted_after_its_time(desk: Desk) -> None:
    desk.ask("one", ttlSecondsAfterFinished=0)
    desk.errands.word = True
    desk.look()
    desk.look()
    assert desk.gone()


def test_a_forced_deletion_lets_go_at_once(desk: Desk) -> None:
    desk.ask("one")
    desk.look()
    desk.server.client.request("DELETE", desk.path)
    assert not desk.gone()
    annotated = {"metadata": {"annotations": {FORCE_DELETE: "true"}}}
    desk.server.client.request("PATCH", desk.path, body=annotated, content_type=MERGE_PATCH)
    assert desk.look() is None
    assert desk.errands.forgotten == ["errand"]
    eventually(desk.gone, "the object is gone", 10)


def test_a_failure_is_told_and_taken_back(desk: Desk) -> None:
    desk.ask("one")
    desk.tell("ApiError: 403 Forbidden: no")
    assert desk.conditions[STALLED] == ("True", "ReconcileFailed")
    assert desk.conditions[FINISHED] == ("False", "InProgress")
    assert "403 Forbidden" in desk.body["status"]["message"]
    desk.look()
    assert desk.conditions[STALLED] == ("False", "NotStalled")


def test_an_object_whose_passes_fail_ends_all_the_same(desk: Desk) -> None:
    desk.ask("one")
    desk.look()
    desk.errands.patience_over = desk.errands.refuses_to_forget = True
    desk.tell("ApiError: 403 Forbidden: no")
    assert desk.conditions[SUCCEEDED] == ("False", "Waited")
    assert desk.body["status"]["message"] == "waited long enough; ApiError: 403 Forbidden: no"
    assert desk.body["metadata"]["finalizers"], "what was written for it has to go first"
    assert desk.look() == 60.0
    desk.errands.refuses_to_forget = False
    desk.look()
    assert not desk.body["metadata"].get("finalizers")


def test_an_ended_object_that_is_deleted_goes_whatever_is_left_of_it(desk: Desk) -> None:
    desk.ask("one")
    desk.look()
    desk.errands.patience_over = desk.errands.refuses_to_forget = True
    desk.tell("ApiError: 403 Forbidden: no")
    desk.server.client.request("DELETE", desk.path)
    desk.look()
    eventually(desk.gone, "the object is gone", 10)


def test_a_copy_is_not_begun(desk: Desk) -> None:
    desk.ask("one")
    desk.look()
    copy = desk.body
    assert copy["metadata"]["annotations"][UID] == copy["metadata"]["uid"]
    copied = {"name": "copy", "namespace": desk.namespace, "annotations": copy["metadata"]["annotations"]}
    desk.server.client.request("POST", DRAINS.format(desk.namespace), body={**copy, "metadata": copied, "status": None})
    Reconciler(desk.errands, Cluster.over(desk.server.client)).reconcile(desk.namespace, "copy")
    status = desk.server.client.request("GET", f"{DRAINS.format(desk.namespace)}/copy")["status"]
    assert status["phase"] == "Rejected"
    assert UID in status["message"]


def test_what_was_written_for_an_object_that_goes_meanwhile_is_removed(desk: Desk) -> None:
    """The API server answers that it has stored the finalizer, and deletes the object all the same."""
    desk.ask("one")
    desk.errands.meanwhile = desk.lose
    desk.look()
    assert desk.errands.forgotten == ["errand"]


def test_what_cannot_be_removed_of_an_object_that_is_gone_is_tried_again(desk: Desk) -> None:
    desk.ask("one")
    desk.errands.meanwhile, desk.errands.refuses_to_forget = desk.lose, True
    reconciler = Reconciler(desk.errands, Cluster.over(desk.server.client))
    for _ in range(2):
        with pytest.raises(ApiError, match="not yours"):
            reconciler.reconcile(desk.namespace, "errand")
    assert reconciler.may_have_left(desk.namespace, "errand")
    desk.errands.refuses_to_forget = False
    assert reconciler.reconcile(desk.namespace, "errand") is None
    assert desk.errands.forgotten == ["errand"]
    assert not reconciler.may_have_left(desk.namespace, "errand")


def test_another_object_of_its_name_begins_after_that(desk: Desk) -> None:
    desk.ask("one")
    reconciler = Reconciler(desk.errands, Cluster.over(desk.server.client))
    reconciler.reconcile(desk.namespace, "errand")
    first = desk.body["metadata"]["uid"]
    desk.lose()
    desk.ask("two")
    assert reconciler.reconcile(desk.namespace, "errand") == 5.0
    assert desk.errands.uids == [first]
    assert desk.body["status"]["message"] == "waiting for a word"
    assert reconciler.may_have_left(desk.namespace, "errand")
