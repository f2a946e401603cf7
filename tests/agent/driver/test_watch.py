"""What is asked of an application is seen, whatever a look at it meets."""

import signal
import threading

import pytest
from spark_drain_agent.driver import watch
from spark_drain_agent.driver.watch import Watch
from spark_drain_store import Channel, Snapshot, StoreError

from tests.support.waiting import eventually


def test_a_defect_in_the_first_look_harms_neither_the_application_nor_later_looks() -> None:
    channel, seen = Channel.in_memory(), []

    def consider(requests: Snapshot) -> None:
        seen.append([*requests.entries])
        if not requests.entries:
            raise RuntimeError("a defect")

    watching = Watch(channel, {"drain-v1": consider})
    watching.begin()
    try:
        channel.requests.write({"mine": "{}"})
        eventually(lambda: seen[-1] == ["mine"], what="the request is seen")
    finally:
        watching.close()


@pytest.mark.parametrize("error", [StoreError("too many open files"), RuntimeError("can't start new thread")])
@pytest.mark.parametrize("early", [True, False])
def test_a_request_whose_first_look_fails_is_looked_at_again_soon(error: Exception, early: bool) -> None:
    channel, looks = Channel.in_memory(), []

    def consider(requests: Snapshot) -> None:
        if requests.entries:
            looks.append([*requests.entries])
            if len(looks) == 1:
                raise error

    watching = Watch(channel, {"drain-v1": consider})
    if early:
        channel.requests.write({"mine": "{}"})
    watching.begin()
    try:
        channel.requests.write({"mine": "{}"})
        eventually(lambda: looks[1:] == [["mine"]], what="the second look", seconds=10)
    finally:
        watching.close()


def test_an_error_that_lasts_is_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Such as a limit of the number of threads, which the application has used up."""
    monkeypatch.setattr(watch, "_RETRY_SECONDS", 0.05)
    channel, looks = Channel.in_memory(), []

    def consider(requests: Snapshot) -> None:
        if requests.entries:
            looks.append([*requests.entries])
            raise RuntimeError("can't start new thread")

    watching = Watch(channel, {"drain-v1": consider})
    watching.begin()
    try:
        channel.requests.write({"mine": "{}"})
        eventually(lambda: len(looks) > 4, what="more looks", seconds=10)
        assert caplog.text.count("the drain monitor met an error and continues") == 1
    finally:
        watching.close()


def test_an_outage_of_the_store_is_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Such as a folder that the driver may not read: nothing else would say why no drain is seen."""
    monkeypatch.setattr(watch, "_OUTAGE_SECONDS", 0.2)
    monkeypatch.setattr(watch, "_RETRY_SECONDS", 0.1)
    caplog.set_level("INFO", "spark_drain")
    channel, away, looks = Channel.in_memory(), threading.Event(), []

    def consider(requests: Snapshot) -> None:
        looks.append(requests.version)
        if away.is_set():
            raise StoreError("permission denied")

    watching = Watch(channel, {"drain-v1": consider})
    watching.begin()
    try:
        away.set()
        channel.requests.write({"mine": "{}"})
        eventually(lambda: "does not answer: permission denied" in caplog.text, what="the warning", seconds=10)
        many = len(looks) + 5
        eventually(lambda: len(looks) > many, what="more looks", seconds=10)
        assert caplog.text.count("permission denied") == 1
        away.clear()
        eventually(lambda: "the metadata store answers again" in caplog.text, what="its end", seconds=10)
    finally:
        watching.close()


def test_a_store_that_keeps_silent_delays_the_program_for_a_few_seconds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as a server that takes the connection and says nothing: the look is still under way."""
    monkeypatch.setattr(watch, "_FIRST_LOOK_SECONDS", 0.2)
    channel, silent, seen = Channel.in_memory(), threading.Event(), []

    def consider(requests: Snapshot) -> None:
        silent.wait(60)
        seen.append([*requests.entries])

    watching = Watch(channel, {"drain-v1": consider})
    try:
        watching.begin()
        assert not seen
        assert "does not answer; drains will be seen when it does" in caplog.text
        silent.set()
        channel.requests.write({"mine": "{}"})
        eventually(lambda: seen and seen[-1] == ["mine"], what="the request is seen", seconds=10)
    finally:
        watching.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_what_a_signal_handler_raises_in_the_first_look_is_the_callers_and_later_looks_go_on(error: type[BaseException]) -> None:
    """Such as Ctrl-C in a notebook, while the store is away."""
    channel, away, seen = Channel.in_memory(), threading.Event(), []

    def consider(requests: Snapshot) -> None:
        if away.is_set():
            raise StoreError("it does not answer")
        seen.append([*requests.entries])

    def handler(*_: object) -> None:
        raise error

    away.set()
    watching = Watch(channel, {"drain-v1": consider})
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        threading.Timer(0.5, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1)).start()
        with pytest.raises(error):
            watching.begin()
        away.clear()
        channel.requests.write({"mine": "{}"})
        eventually(lambda: seen and seen[-1] == ["mine"], what="the request is seen")
    finally:
        signal.signal(signal.SIGUSR1, before)
        watching.close()


def test_where_there_is_no_thread_for_it_the_program_goes_on(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    channel, seen, start = Channel.in_memory(), threading.Event(), threading.Thread.start

    def none_left(thread: threading.Thread) -> None:
        if thread.name == "spark-drain-monitor":
            raise RuntimeError("can't start new thread")
        start(thread)

    watching = Watch(channel, {"drain-v1": lambda _: seen.set()})
    try:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", none_left)
            watching.begin()
            watching.go_on()
        assert not watching.runs
        assert caplog.text.count("no drain of this application is seen until it starts another query: can't start new thread") == 2
        watching.go_on()
        assert seen.wait(30)
        assert watching.runs
    finally:
        watching.close()
