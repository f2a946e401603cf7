"""A key waits once, and no two workers have it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from spark_drain_operator.engine.queue import DelayedQueue


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_key_is_queued_once() -> None:
    queue: DelayedQueue[str] = DelayedQueue()
    for _ in range(3):
        queue.add("a")
    queue.add("b")
    assert len(queue) == 2
    assert (queue.get(), queue.get()) == ("a", "b")
    assert len(queue) == 0


def test_the_earliest_time_wins() -> None:
    clock = Time()
    queue: DelayedQueue[str] = DelayedQueue(clock)
    queue.add("a", 10)
    queue.add("b", 5)
    queue.add("a", 1)
    queue.add("b", 20)
    clock.now = 1.0
    assert queue.get() == "a"
    clock.now = 5.0
    assert queue.get() == "b"
    assert len(queue) == 0


def test_a_key_that_is_worked_on_comes_back_afterwards() -> None:
    queue: DelayedQueue[str] = DelayedQueue()
    queue.add("a")
    assert queue.get() == "a"
    queue.add("a")
    queue.add("b")
    assert queue.get() == "b"
    queue.done("a")
    assert queue.get() == "a"


def queue_of(*keys: str) -> DelayedQueue[str]:
    """Keys are owner, number and rank."""
    queue: DelayedQueue[str] = DelayedQueue(rank=lambda key: int(key[-1]), owner=lambda key: key[0])
    for key in keys:
        queue.add(key)
    return queue


def test_who_adds_many_keys_makes_nobody_wait_for_them() -> None:
    queue = queue_of("a11", "a21", "a31", "b11", "a40")
    assert [queue.get(), queue.get()] == ["a40", "a11"]
    queue.add("c11")
    assert [queue.get() for _ in range(4)] == ["b11", "a21", "c11", "a31"]
    assert len(queue) == 0


def test_what_is_urgent_lets_the_rest_have_its_share() -> None:
    queue = queue_of(*(f"a{number}0" for number in range(100)), "b01", "b11", "c02")
    taken = [queue.get() for _ in range(8)]
    assert taken == ["a00", "a10", "b01", "a20", "a30", "b11", "a40", "c02"]


def test_closing_wakes_everybody() -> None:
    queue: DelayedQueue[str] = DelayedQueue()
    found: list[str | None] = []
    threads = [threading.Thread(target=lambda: found.append(queue.get())) for _ in range(2)]
    for thread in threads:
        thread.start()
    queue.close()
    for thread in threads:
        thread.join(timeout=5)
    assert found == [None, None]


def test_the_most_urgent_goes_first() -> None:
    ranks = {"a": 2, "b": 1, "c": 0, "d": 1}
    queue: DelayedQueue[str] = DelayedQueue(rank=lambda key: ranks[key])
    for key in "abcd":
        queue.add(key)
    assert queue.get() == "c"
    ranks["d"] = 0
    queue.add("d")  # it has become urgent while it waited for its turn
    assert [queue.get() for _ in "abd"] == ["d", "b", "a"]
    assert len(queue) == 0


def test_urgency_does_not_shorten_a_delay() -> None:
    clock = Time()
    ranks = {"late": 0, "now": 2}
    queue: DelayedQueue[str] = DelayedQueue(clock, lambda key: ranks[key])
    queue.add("late", 5)
    queue.add("now")
    assert queue.get() == "now"
    clock.now = 5.0
    assert queue.get() == "late"


def test_what_is_due_in_thousands_of_years_is_waited_for() -> None:
    queue: DelayedQueue[str] = DelayedQueue()
    queue.add("late", 2.5e11)
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(queue.get)
        with pytest.raises(TimeoutError):
            taken.result(0.2)
        queue.add("now")
        assert taken.result(10) == "now"
