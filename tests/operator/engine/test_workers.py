"""A pass that fails is tried again; a worker that is stuck is noticed."""

import threading
import time

import pytest
from spark_drain_operator.engine.queue import DelayedQueue
from spark_drain_operator.engine.workers import ObjectKey, Workers, backoff
from spark_drain_store import ConflictError, StoreUnavailableError
from spark_drain_store.kube_client import AnswerTooLargeError, ApiError, ApiUnavailableError


def over_store(error: ApiUnavailableError) -> StoreUnavailableError:
    """Return the error of a store whose API server has that one."""
    wrapped = StoreUnavailableError(str(error))
    wrapped.__cause__ = error
    return wrapped


def test_backoff_grows_to_a_minute() -> None:
    assert [backoff(failures) for failures in (1, 2, 3, 6, 7, 5000)] == [1, 2, 4, 32, 60, 60]
    assert [backoff(failures, conflicts=True) for failures in (1, 2, 3, 6, 5000)] == [0.2, 0.4, 0.8, 5, 5]


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


@pytest.mark.parametrize(
    "error",
    [
        ConflictError("changed"),
        ApiError(409, "Conflict", "changed"),
        ApiError(403, "Forbidden", "no"),
        ApiUnavailableError("failed calling webhook", 500),
        over_store(ApiUnavailableError("failed calling webhook", 500)),
        AnswerTooLargeError("longer than 1 bytes"),
        over_store(AnswerTooLargeError("longer than 1 bytes")),
        ValueError("defect"),
        AssertionError(),
    ],
)
def test_what_goes_on_failing_is_told(error: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_drain_operator.engine.workers.backoff", lambda *_, **__: 0.0)
    told: list[str] = []
    enough = threading.Event()

    def reconcile(_key: ObjectKey) -> float | None:
        raise error

    def tell(_key: ObjectKey, problem: str) -> None:
        told.append(problem)
        if len(told) == 5:
            enough.set()
        raise error  # its status cannot be written either

    queue: DelayedQueue[ObjectKey] = DelayedQueue()
    workers = Workers(queue, reconcile, 1, tell)
    workers.start()
    queue.add(ObjectKey("PipelineDrain", "ns", "drain"))
    assert enough.wait(10)
    workers.stop(5)
    assert type(error).__name__ in told[0]
    assert str(error) in told[0]
    assert ("defect in the operator, see its log" in told[0]) == isinstance(error, ValueError | AssertionError)
    assert "again in" in caplog.text, "permanent conflicts are not silent"
    assert workers.stuck() == ["worker-0"], "stopped, after having survived it all"


def test_an_api_server_that_is_away_for_long_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be only some of its answers that do not come."""
    monkeypatch.setattr("spark_drain_operator.engine.workers.backoff", lambda *_, **__: 0.0)
    passes: list[int] = []
    told = threading.Event()

    def reconcile(_key: ObjectKey) -> float | None:
        if not told.is_set():
            passes.append(1)
        raise ApiUnavailableError("timed out", 504)

    queue: DelayedQueue[ObjectKey] = DelayedQueue()
    workers = Workers(queue, reconcile, 1, lambda *_: told.set())
    workers.start()
    queue.add(ObjectKey("PipelineDrain", "ns", "drain"))
    assert told.wait(10)
    workers.stop(5)
    assert 120 < sum(backoff(failures) for failures in range(1, len(passes))) < 300


def test_a_few_conflicts_are_not_told_of() -> None:
    """Writing again is what they ask for; Stalled would call for somebody."""
    told: list[str] = []
    passes: list[float] = []
    finished = threading.Event()

    def reconcile(_key: ObjectKey) -> float | None:
        passes.append(time.monotonic())
        if len(passes) <= 5:
            raise ApiError(409, "Conflict", "changed")
        finished.set()
        return None

    queue: DelayedQueue[ObjectKey] = DelayedQueue()
    workers = Workers(queue, reconcile, 1, lambda _, problem: told.append(problem))
    workers.start()
    queue.add(ObjectKey("PipelineDrain", "ns", "drain"))
    assert finished.wait(30)
    workers.stop(5)
    assert not told


@pytest.mark.parametrize("status", [0, 429, 503])
@pytest.mark.parametrize("stored", [False, True])
def test_an_api_server_that_is_away_is_not_told_of(status: int, stored: bool) -> None:
    error = ApiUnavailableError("away", status)
    told: list[str] = []
    passes = threading.Semaphore(0)

    def reconcile(_key: ObjectKey) -> float | None:
        passes.release()
        raise over_store(error) if stored else error

    queue: DelayedQueue[ObjectKey] = DelayedQueue()
    workers = Workers(queue, reconcile, 1, lambda _, problem: told.append(problem))
    key = ObjectKey("PipelineDrain", "ns", "drain")
    workers._failures[key] = 7
    workers.start()
    queue.add(key)
    assert passes.acquire(timeout=10)
    workers.stop(5)
    assert not told
