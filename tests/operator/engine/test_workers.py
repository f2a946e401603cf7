"""A pass that fails is tried again; a worker that is stuck is noticed."""

import threading
import time

import pytest
from spark_drain_operator.engine.queue import DelayedQueue
from spark_drain_operator.engine.workers import ObjectKey, Workers, backoff
from spark_drain_store import ConflictError
from spark_drain_store.kube_client import ApiError


def test_backoff_grows_to_a_minute() -> None:
    assert [backoff(failures) for failures in (1, 2, 3, 6, 7, 50)] == [1, 2, 4, 32, 60, 60]


@pytest.mark.parametrize(
    "error", [ConflictError("changed"), ApiError(409, "Conflict", "changed"), ApiError(403, "Forbidden", "no"), ValueError("defect")]
)
def test_a_failed_pass_is_tried_again(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    passes: list[float] = []
    finished = threading.Event()

    def reconcile(_key: ObjectKey) -> float | None:
        passes.append(time.monotonic())
        if len(passes) == 1:
            raise error
        finished.set()
        return None

    queue: DelayedQueue[ObjectKey] = DelayedQueue()
    workers = Workers(queue, reconcile, 2)
    workers.start()
    queue.add(ObjectKey("PipelineDrain", "ns", "drain"))
    assert finished.wait(10)
    workers.stop(5)
    assert len(passes) == 2
    assert (passes[1] - passes[0] < 0.9) == (getattr(error, "status", 409) == 409 and not isinstance(error, ValueError))
    assert ("defect in the operator" in caplog.text) == isinstance(error, ValueError)


def test_dead_workers_are_noticed() -> None:
    workers = Workers(DelayedQueue(), lambda *_: None, 1)
    assert workers.stuck() == ["worker-0"]
    workers.start()
    assert workers.stuck() == []
    workers.stop(5)
