"""What the application's code sees of its queries while a drain holds them, and what it is told about its batches."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark import InheritableThread
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent import generation, is_drain_pane, on_drain
from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.driver.held_query import HeldQuery
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.user_code import callbacks

from tests.agent.apps.sinks import counted, read
from tests.agent.driver.streams import Started, in_thread, start
from tests.agent.harness import Drains, Driver, Feed, eventually, exactly, ids_in
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_drained_query_counts_as_running_until_the_driver_may_go(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    query = start(warm.session, tmp_path, "drained")
    query.processAllAvailable()
    streams = warm.session.streams
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Drained")
        assert [found.id for found in streams.active] == [query.id]
        found = streams.get(query.id)
        assert found is not None
        assert (found.name, found.isActive) == ("drained", True)
        assert query.isActive
        assert query.exception() is None
        assert query.lastProgress is not None
        assert query.recentProgress
        assert isinstance(query.status["message"], str)
        feed.add()
        everything = Started(query.processAllAvailable)
        end, any_end = Started(query.awaitTermination), Started(streams.awaitAnyTermination)
        held = in_thread(lambda: start(warm.session, tmp_path, "drained"))
        new = in_thread(lambda: start(warm.session, tmp_path, "new"))
        for stand_in in (held, new):
            assert isinstance(stand_in, HeldQuery)
            assert isinstance(stand_in, StreamingQuery)
            assert stand_in == streams.get(stand_in.id)
            assert stand_in in streams.active
            assert "held" in str(stand_in)
        assert held.id == query.id
        assert {found.name for found in streams.active} == {"drained", "new"}
        time.sleep(1)
        assert not any(waiting.over for waiting in (everything, end, any_end))
    for waiting in (everything, end, any_end):
        waiting.result()
    assert not streams.active
    assert streams.get(new.id) is None
    assert not query.isActive


def test_a_signal_handler_looks_at_what_seems_to_run_while_its_thread_does(
    warm: Warm, tmp_path: Path, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is called between any two steps of the main thread, which goes on only when it has returned."""
    start(warm.session, tmp_path, "drained").processAllAvailable()
    streams, looked = warm.session.streams, list[int]()

    def belongs(_: TrackedQuery, __: object) -> bool:
        if not looked:
            looked.append(-1)
            looked[0] = len(warm.agent.held.of(streams))
        return True

    with warm.requested() as asked:
        warm.drains.reaches(asked, "Drained")
        in_thread(lambda: start(warm.session, tmp_path, "new"))
        with monkeypatch.context() as patch:
            patch.setattr(TrackedQuery, "belongs_to", belongs)
            patch.setattr(warm.agent.held, "owned", lambda: ())
            assert in_thread(lambda: len(warm.agent.held.of(streams))) == 1
    assert looked == [1]


def test_everything_available_is_not_said_to_be_processed_while_nothing_is_read(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    block = tmp_path / "block"

    def wait(batch: DataFrame, batch_id: int) -> None:
        give_up = time.monotonic() + 120
        while block.exists() and time.monotonic() < give_up:
            time.sleep(0.05)

    reading = start(warm.session, tmp_path, "reading")
    reading.processAllAvailable()
    block.touch()
    start(warm.session, tmp_path, "blocked", wait)
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Stopping", reason="BatchRunning")
        feed.add(2)
        everything = Started(reading.processAllAvailable)
        time.sleep(3)
        assert not everything.over
        warm.drains.withdraw(asked)
        warm.drains.reaches(asked, "Withdrawn")
        everything.result()
        assert ids_in(tmp_path / "out/reading") == exactly(feed.ids)
        block.unlink()


class Told:
    """What code was told, by the thread that asked."""

    def __init__(self) -> None:
        self.by: dict[str, Any] = {}

    def ask(self, who: str) -> None:
        for what, question in (("generation", generation), ("pane", is_drain_pane)):
            try:
                self.by[f"{who} {what}"] = question()
            except RuntimeError as error:
                self.by[f"{who} {what}"] = str(error)


def test_what_a_thread_cannot_know_it_is_not_told(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    """A number for a batch that the thread does not run would make a key that another batch has too."""
    told = Told()

    def ask(batch: DataFrame, batch_id: int) -> None:
        told.ask("batch")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(told.ask, "pool").result()
        inheriting = InheritableThread(target=told.ask, args=("inheriting",))
        inheriting.start()
        inheriting.join()

    start(warm.session, tmp_path, "asking", ask).processAllAvailable()
    told.ask("main")
    for who in ("batch", "inheriting"):
        assert (told.by[f"{who} generation"], told.by[f"{who} pane"]) == (0, False)
    for who in ("pool", "main"):
        for what in ("generation", "pane"):
            assert "call it in the foreachBatch function itself and pass the answer on" in told.by[f"{who} {what}"], (who, what)


def test_a_query_that_is_started_in_a_flush_runs_no_drain_pane(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    """Queries inherit what the thread that starts them is told; the drain is not about this one."""
    told, started = Told(), list[StreamingQuery]()

    def begin_another(batch: DataFrame, _: int) -> None:
        batch.collect()
        if is_drain_pane():
            started.append(start(warm.session, tmp_path, "another", lambda *_: told.ask("batch")))

    windows = counted(read(warm.session, tmp_path)).writeStream.queryName("windows")
    windows.option("checkpointLocation", str(tmp_path / "windows")).foreachBatch(begin_another).start().processAllAvailable()
    warm.drain(queries="windows", afterDrain="Keep")
    (another,) = started
    in_thread(another.processAllAvailable)
    assert told.by["batch pane"] is False


def test_without_an_agent_no_generation_is_known(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    told = Told()
    with as_agent():  # its calls meet no hooks, as if none were installed
        start(warm.session, tmp_path, "unattached", lambda *_: told.ask("batch")).processAllAvailable()
    assert told.by["batch pane"] is False
    assert "run the application under `python -m spark_drain_agent`" in told.by["batch generation"]


@pytest.mark.parametrize(
    "how",
    [
        *("stops", "asyncio"),
        *(
            pytest.param(how, marks=pytest.mark.soak)
            for how in ("default", "waits for it", "any", "exits", "stops Spark", "caught", "flag", "stops the query only")
        ),
    ],
)
def test_sigterm_ends_a_held_driver_at_once(tmp_path: Path, how: str) -> None:
    """Kubernetes deletes the pod: whoever handles the signal stops its queries and Spark, and exits; nobody waits for the request to go."""
    feed, drains = Feed(tmp_path / "input"), Drains(tmp_path / "store")
    feed.add()
    driver = Driver("terminated.py", tmp_path, how, store=drains)
    try:
        eventually(lambda: ids_in(tmp_path / "out/only") == exactly(feed.ids), "the query to read", alive=driver)
        asked = drains.write()
        drains.reaches(asked, "Drained", driver=driver)
        begun = time.monotonic()
        driver.terminate()
        code = driver.wait(60)
        assert time.monotonic() - begun < 20, driver.tail()
        assert code == (-15 if how == "default" else 5), driver.tail()
    finally:
        driver.close()


@pytest.mark.parametrize("agent", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["agent", "plain"])
@pytest.mark.parametrize(("how", "code"), [("exit", 5), pytest.param("interrupt", -2, marks=pytest.mark.soak)])
def test_a_handler_leaves_a_start_that_takes_long(tmp_path: Path, how: str, code: int, agent: bool) -> None:
    """Seen with the agent: it asked the JVM on the way out, was given the answer to the start, and that only when the start was over."""
    Feed(tmp_path / "input").add()
    driver = Driver("slow_start.py", tmp_path, how, store=Drains(tmp_path / "store") if agent else None)
    try:
        eventually((tmp_path / "starting").exists, "the start to begin", alive=driver)
        begun = time.monotonic()
        driver.terminate()
        assert driver.wait(60) == code, driver.tail()
        assert time.monotonic() - begun < 10, driver.tail()
    finally:
        driver.close()


def test_ctrl_c_ends_a_driver_that_a_drain_holds_only_later(tmp_path: Path) -> None:
    """The drain decides while the program still cleans up after it was told to end."""
    feed, drains = Feed(tmp_path / "input"), Drains(tmp_path / "store")
    feed.add()
    driver = Driver("terminated.py", tmp_path, "interrupted", store=drains)
    try:
        eventually(lambda: ids_in(tmp_path / "out/only") == exactly(feed.ids), "the query to read", alive=driver)
        block = tmp_path / "block"
        block.touch()
        feed.add()
        eventually((tmp_path / "blocked").exists, "a batch that stands still", alive=driver)
        asked = drains.write()
        drains.reaches(asked, "Stopping", driver=driver)
        driver.interrupt()
        block.unlink()
        drains.reaches(asked, "Drained", driver=driver)
        begun = time.monotonic()
        (tmp_path / "cleaned-up").touch()
        code = driver.wait(60)
        assert time.monotonic() - begun < 20, driver.tail()
        assert code == 5, driver.tail()
    finally:
        (tmp_path / "block").unlink(missing_ok=True)
        driver.close()


@pytest.mark.parametrize("wrapped", [pytest.param(False, id="direct"), pytest.param(True, id="wrapped", marks=pytest.mark.soak)])
def test_a_held_driver_ends_with_the_jvm_that_has_started_it(tmp_path: Path, wrapped: bool) -> None:
    """With spark-submit Python is the JVM's child, or that of a script which the JVM runs as Python; nobody else would end it."""
    python = sys.executable
    if wrapped:
        wrapper = tmp_path / "python"
        wrapper.write_text(f'#!/bin/sh\n"{sys.executable}" "$@"\nexit $?\n')
        wrapper.chmod(0o755)
        python = str(wrapper)
    feed, drains = Feed(tmp_path / "input"), Drains(tmp_path / "store")
    feed.add()
    driver = Driver("terminated.py", tmp_path, "default", store=drains, submitted=True, python=python)
    try:
        eventually(lambda: ids_in(tmp_path / "out/only") == exactly(feed.ids), "the query to read", alive=driver)
        drains.reaches(drains.write(), "Drained", driver=driver)
        children = driver.kill()
        assert children
        eventually(lambda: not any(Path(f"/proc/{child}").exists() for child in children), "Python to end", 30)
    finally:
        driver.close()


def test_a_callback_that_stops_spark_does_not_wait(warm: Warm, tmp_path: Path, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is stopped all the same, when the drain needs it no more."""
    monkeypatch.setattr(callbacks, "_registered", [])
    on_drain(when="after", timeout_seconds=30)(lambda _: warm.session.stop())
    start(warm.session, tmp_path, "only").processAllAvailable()
    internals = warm.agent.internals
    drain = warm.drain()
    assert drain["message"] == "1 query drained"
    eventually(lambda: not any(thread.name == "spark-drain-stop" for thread in threading.enumerate()), "Spark to be stopped", 60)
    assert internals.stopped
    warm.again()


def test_spark_is_stopped_while_a_drain_waits_for_a_batch(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    """A watchdog ends a program whose batch hangs; the drain can still be given up, and needs nobody."""
    begun, free = threading.Event(), threading.Event()

    def hang(batch: DataFrame, batch_id: int) -> None:
        begun.set()
        free.wait(300)

    start(warm.session, tmp_path, "hanging", hang)
    assert begun.wait(60)
    try:
        with warm.requested() as asked:
            warm.drains.reaches(asked, "Stopping")
            Started(warm.session.stop).result(60)
    finally:
        free.set()
    warm.again()


def test_spark_is_stopped_under_a_lock_that_the_flush_waits_for(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    """Without a drain, stopping Spark ends the batch; in its flush it waits, until the request is removed."""
    lock, begun = threading.Lock(), threading.Event()

    def write(batch: DataFrame, batch_id: int) -> None:
        if is_drain_pane():
            begun.set()
        with lock:
            batch.collect()

    windows = counted(read(warm.session, tmp_path)).writeStream.queryName("windows")
    windows.option("checkpointLocation", str(tmp_path / "windows")).foreachBatch(write).start().processAllAvailable()
    with warm.requested(), lock:
        assert begun.wait(60)
        stopping = Started(warm.session.stop)
        time.sleep(2)
        assert not stopping.over
        warm.drains.clean_up(everything=True)
        stopping.result(60)
    warm.again()


def test_a_query_that_a_flush_waits_for_in_another_thread_ends_with_the_request(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    """The drain waits for the flush, which waits for a query that the drain keeps from starting."""
    begun = threading.Event()

    def copy_too(batch: DataFrame, batch_id: int) -> None:
        batch.collect()
        if is_drain_pane():
            copying = start(warm.session, tmp_path, "copy")
            begun.set()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(copying.awaitTermination).result()

    windows = counted(read(warm.session, tmp_path)).writeStream.queryName("windows")
    query = windows.option("checkpointLocation", str(tmp_path / "windows")).foreachBatch(copy_too).start()
    query.processAllAvailable()
    with warm.requested() as asked:
        assert begun.wait(60)
        assert warm.drains.show(asked)["state"] == "Flushing"
        warm.drains.clean_up(everything=True)
        in_thread(warm.let_go)


def test_threads_are_named_and_end_with_the_program(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    before = set(threading.enumerate())
    start(warm.session, tmp_path, "one")
    start(warm.session, tmp_path, "two").processAllAvailable()
    seen: set[threading.Thread] = set()
    with warm.requested() as asked:
        done = Started(lambda: warm.drains.reaches(asked, "Drained"))
        while not done.over:
            seen |= set(threading.enumerate()) - before
            time.sleep(0.02)
        done.result()
    mine = [thread for thread in seen if thread.name.startswith("spark-drain")]
    assert mine
    assert all(thread.daemon for thread in mine), [thread.name for thread in mine if not thread.daemon]
