"""What is refused without a look at Spark."""

import logging
import threading
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from spark_drain_agent.placement.handler import PlacementHandler
from spark_drain_agent.placement.overdue import Overdue
from spark_drain_agent.spark_internals.executor_pods import ExecutorPods
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_store import Channel
from spark_drain_store.placement_messages import PlacementRequest, PlacementResponse, PlacementStatus
from spark_drain_store.placements import Placements, write_placement_response
from spark_drain_store.protocol import MAX_TOTAL_BYTES
from spark_drain_store.topics import PLACEMENT

from tests.support.waiting import eventually

REQUEST = PlacementRequest(placement_id="p", created_at=datetime(2026, 11, 24, tzinfo=UTC), executor_id="4", destination_host="node-2")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"run_id": "spark-0"}, "meant for run spark-0"),
        ({"withdrawn": True}, "withdrawn before it was begun"),
        ({"executor_id": "driver"}, "processorId must be"),
    ],
)
def test_no_spark_is_asked_for_what_cannot_be_meant(asked: dict[str, Any], told: str) -> None:
    nothing = object()  # every look at it fails, as a pod template that cannot be loaded does
    handler = PlacementHandler(cast(SparkInternals, nothing), cast(Channel, nothing), "spark-1", str, list)
    assert told in handler._refusal(replace(REQUEST, **asked), cast(ExecutorPods, nothing))


@pytest.mark.parametrize(("replaced", "status"), [(True, PlacementStatus.SUCCEEDED), (False, PlacementStatus.FAILED)])
def test_the_next_run_says_what_became_of_a_placement(replaced: bool, status: PlacementStatus) -> None:
    """The run before was killed; where it had replaced the executor, it waited only for a batch."""
    channel = Channel.in_memory().about(PLACEMENT)
    channel.requests.write({"p": REQUEST.to_json()})
    response = PlacementResponse(
        placement_id="p", status=PlacementStatus.IN_PROGRESS, updated_at=REQUEST.created_at, run_id="spark-0", replaced=replaced
    )
    write_placement_response(channel, response)

    nothing = object()
    handler = PlacementHandler(cast(SparkInternals, nothing), channel, "spark-1", str, list)
    handler._requests = {"p": REQUEST}
    handler._answer("p", cast(ExecutorPods, nothing), cast(Overdue, ()))
    answer = Placements.read(channel).responses["p"]
    assert answer.status is status
    assert "spark-0" in answer.message


def test_a_placement_that_came_when_the_system_had_no_more_threads_is_answered_later(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = Channel.in_memory().about(PLACEMENT)
    channel.requests.write({"p": "{}"})
    handler = PlacementHandler(cast(SparkInternals, SimpleNamespace(stopped=False, jvm=None)), channel, "spark-1", str, list)

    def no_more(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_more)
        with pytest.raises(RuntimeError):
            handler.consider(channel.requests.read())
    handler.consider(channel.requests.read())
    eventually(lambda: Placements.read(channel).responses.get("p"), what="the answer", seconds=10)


def test_a_full_store_of_responses_takes_another_one(caplog: pytest.LogCaptureFixture) -> None:
    """Responses to requests that were removed make room, and no response is larger for what its request holds."""
    caplog.set_level(logging.INFO, "spark_drain")
    channel = Channel.in_memory().about(PLACEMENT)
    channel.reports.write({"old": "x" * (MAX_TOTAL_BYTES - 500)})
    asked = replace(REQUEST, destination_host="N" * 10_000)
    channel.requests.write({"p": asked.to_json()})
    handler = PlacementHandler(cast(SparkInternals, SimpleNamespace(stopped=False, jvm=None)), channel, "spark-1", str, list)
    handler.consider(channel.requests.read())
    answer = eventually(lambda: Placements.read(channel).responses.get("p"), what="the answer", seconds=10)
    assert answer.status is PlacementStatus.BAD_REQUEST
    assert "destinationHost must be the name of a node" in answer.message
    assert len(answer.to_json()) < 2000
    assert list(channel.reports.read().entries) == ["p"]
    assert caplog.text.count("placement p: BAD_REQUEST") == 1


def test_a_response_for_which_there_is_no_room_is_not_logged_as_given(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "spark_drain")
    channel = Channel.in_memory().about(PLACEMENT)
    channel.requests.write({"p": REQUEST.to_json(), "other": "{}"})
    channel.reports.write({"other": "x" * (MAX_TOTAL_BYTES - 100)})
    internals = SimpleNamespace(stopped=True, jvm=None)
    handler = PlacementHandler(cast(SparkInternals, internals), channel, "spark-1", str, list)
    handler._requests = {"p": REQUEST}
    handler._respond(PlacementResponse(placement_id="p", status=PlacementStatus.FAILED, updated_at=REQUEST.created_at))
    assert "placement p: FAILED" not in caplog.text
    assert "placement p: the response could not be written" in caplog.text
