"""The connections to the JVM of an application that forks."""

from __future__ import annotations

import os
import threading
import time

import pytest

from tests.agent.driver.streams import Started
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_the_application_forks_leaves_other_threads_their_connections(warm: Warm) -> None:
    jvm = warm.agent.internals.jvm
    lock = jvm.java.util.concurrent.locks.ReentrantLock()
    locked, forked = threading.Event(), threading.Event()

    def hold() -> int:
        lock.lock()  # belongs to this thread's connection, as a query's progress lock does while it is frozen
        locked.set()
        forked.wait()
        count = int(lock.getHoldCount())
        lock.unlock()
        return count

    def sleep() -> None:
        locked.wait()
        jvm.java.lang.Thread.sleep(3000)

    holder, sleeper = Started(hold), Started(sleep)
    locked.wait()
    time.sleep(1)  # the other call is on its way
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    forked.set()
    assert holder.result() == 1
    sleeper.result()
