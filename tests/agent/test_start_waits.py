"""How a start of the application's waits."""

from __future__ import annotations

import threading
import time

import pytest
from spark_drain_agent.start_waits import StartGivenUpError, given_up_when, pause


def test_a_pause_takes_its_time_where_nothing_can_end_it() -> None:
    begun = time.monotonic()
    pause(0.2)
    with given_up_when(lambda: False):
        pause(0.2)
    assert time.monotonic() - begun >= 0.4


def test_a_start_that_is_given_up_waits_no_more() -> None:
    told = threading.Event()
    threading.Timer(0.2, told.set).start()
    begun = time.monotonic()
    with pytest.raises(StartGivenUpError), given_up_when(told.is_set):
        pause(60.0)
    assert time.monotonic() - begun < 10
    pause(0.01)


def test_other_threads_wait_on() -> None:
    with given_up_when(lambda: True):
        other = threading.Thread(target=pause, args=(0.1,))
        other.start()
        other.join()
        with pytest.raises(StartGivenUpError):
            pause(0.1)
