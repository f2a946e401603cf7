"""Queries start, stop and start again from listeners, batches, thread pools and main while drains come and go: nothing hangs or is lost."""

from __future__ import annotations

import faulthandler
import itertools
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tests.agent.driver.streams import in_thread, listening, start, writer
from tests.agent.harness import Feed, exactly, ids_in
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

_SILENT_SECONDS = 120.0
"""Longer than any start, stop or drain takes on a busy machine: whoever is silent for so long hangs."""


class Watchdog:
    """What every thread did last, and when; a thread that is silent too long fails the test with the stacks of all."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, str]] = {}
        self.errors: list[str] = []
        self.done: Counter[str] = Counter()

    def note(self, who: str, what: str) -> None:
        self._last[who] = (time.monotonic(), what)
        self.done[what] += 1

    def over(self, who: str) -> None:
        self._last.pop(who, None)

    def look(self) -> None:
        silent = {who: what for who, (when, what) in list(self._last.items()) if time.monotonic() - when > _SILENT_SECONDS}
        if silent:
            with tempfile.TemporaryFile("w+") as stacks:
                faulthandler.dump_traceback(stacks, all_threads=True)
                stacks.seek(0)
                pytest.fail(f"threads hang after: {silent}\n{stacks.read()}")


class Stress:
    """The application and those who ask it to drain.

    Parameters
    ----------
    warm
        The session.
    base
        Folder for input, checkpoints and output.
    seed
        Of all random choices.
    """

    def __init__(self, warm: Warm, base: Path, seed: int) -> None:
        self.warm, self.base = warm, base
        self.spark = warm.session
        self.feed = Feed(base / "input")
        self.feed.add()
        self.random = random.Random(seed)
        self.watchdog = Watchdog()
        self.leave = threading.Event()
        self.names = itertools.count()
        self.steady: StreamingQuery | None = None

    def worker(self, who: str, act: Callable[[], str]) -> threading.Thread:
        """Return a thread that acts until the end and says each time what it did."""

        def run() -> None:
            try:
                while not self.leave.is_set():
                    self.watchdog.note(who, act())
            except Exception as error:
                self.watchdog.errors.append(f"{who}: {type(error).__name__}: {error}")
            finally:
                self.watchdog.over(who)

        return threading.Thread(target=run, name=f"stress-{who}", daemon=True)

    def main(self) -> str:
        """Start the well-behaved query whenever it ends, as a program does that is to live for ever."""
        self.steady = start(self.spark, self.base, "steady")
        while not self.leave.is_set() and not self.steady.awaitTermination(1):
            self.watchdog.note("main", "waited")
        return "steady ended"

    def pool(self) -> str:
        """Start two queries at once, stop one from another thread than it was started in, let the other end by itself."""
        first, second = (f"pool-{next(self.names)}" for _ in range(2))
        with ThreadPoolExecutor(2) as pool:
            unbounded = pool.submit(start, self.spark, self.base, first)
            bounded = pool.submit(lambda: writer(self.spark, self.base, second).trigger(availableNow=True).start())
            started = unbounded.result(), bounded.result()
        started[1].awaitTermination(self.random.randint(1, 2))
        for query in started:
            query.stop()
        return "pool started and stopped"

    def spawn(self, name: str | None) -> None:
        """In a listener: start a query for each that the pool starts, and stop it again."""
        if name is not None and name.startswith("pool"):
            query = start(self.spark, self.base, f"heard-{next(self.names)}")
            query.stop()
            self.watchdog.done["listener started and stopped"] += 1

    def spawner(self) -> str:
        """Let a batch start a query and stop the one that the batch before it had started."""
        children: list[StreamingQuery] = []

        def each(batch: DataFrame, batch_id: int) -> None:
            for child in children:
                child.stop()
            children[:] = [start(self.spark, self.base, f"child-{next(self.names)}")]
            self.watchdog.done["batch started and stopped"] += 1

        query = start(self.spark, self.base, f"spawner-{next(self.names)}", each)
        query.awaitTermination(self.random.randint(2, 4))
        query.stop()
        for child in children:
            child.stop()
        return "spawner ended"

    def drain(self) -> str:
        """Ask for a drain of some kind, and take it back or wait for its end."""
        drains, kind = self.warm.drains, self.random.choice(["withdrawn", "subset", "plan"])
        options = {"withdrawn": {}, "subset": {"queries": "steady", "afterDrain": "Keep"}, "plan": {"execution": "PlanOnly"}}[kind]
        asked = drains.write(**options)
        patience = time.monotonic() + (self.random.uniform(0, 4) if kind != "subset" else 60)
        while drains.show(asked)["state"] not in ("Drained", "Failed", "Rejected") and time.monotonic() < patience:
            time.sleep(0.1)
        drains.withdraw(asked)
        state = drains.show(asked)["state"]
        drains.clean_up(everything=True)
        while self.warm.agent.drain is not None:
            time.sleep(0.05)
        return f"drain {kind} {state}"

    def run(self, seconds: float) -> None:
        """Let all of it go on for a while."""
        acts = {"main": self.main, "pool": self.pool, "spawner": self.spawner, "drain": self.drain}
        workers = [self.worker(who, act) for who, act in acts.items()]
        with listening(self.spark, self.spawn) as listener:
            for worker in workers:
                worker.start()
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                self.feed.add()
                time.sleep(1)
                self.watchdog.look()
            self.leave.set()
            while any(worker.is_alive() for worker in workers):
                time.sleep(0.1)
                self.watchdog.look()
        self.watchdog.errors += [f"listener: {error}" for error in listener.errors]


@pytest.mark.parametrize(
    ("seconds", "seed"), [(15, 1), pytest.param(300, 2, marks=pytest.mark.soak), pytest.param(300, 3, marks=pytest.mark.soak)]
)
def test_starts_and_stops_from_everywhere_while_drains_come_and_go(warm: Warm, tmp_path: Path, seconds: float, seed: int) -> None:
    stress = Stress(warm, tmp_path, seed)
    stress.run(seconds)
    assert not stress.watchdog.errors
    done = stress.watchdog.done
    assert {"pool started and stopped", "listener started and stopped", "batch started and stopped", "spawner ended"} <= done.keys(), done
    assert any(what.startswith("drain") for what in done), done

    warm.let_go()
    assert stress.steady is not None
    if not stress.steady.isActive:
        stress.steady = start(warm.session, tmp_path, "steady")
    in_thread(stress.steady.processAllAvailable)
    assert warm.drain()["state"] == "Drained"
    assert not warm.session.streams.active
    assert ids_in(tmp_path / "out/steady") == exactly(stress.feed.ids)
