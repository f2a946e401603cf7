"""Who may work on a checkpoint: the lease of a driver that lives, and of one that is gone."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
from spark_drain_agent.checkpoint.files import CheckpointFiles, CheckpointLeasedError
from spark_drain_agent.checkpoint.lease import LEASE_FILES, acquire_lease
from spark_drain_agent.durations import LEASE
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.start_waits import StartGivenUpError, given_up_when

from tests.agent.folder import Folder, files_in
from tests.support.lease_race import Run
from tests.support.waiting import eventually

SECONDS = 0.5


@pytest.fixture(autouse=True)
def _shorter_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    short = replace(LEASE, default=SECONDS, least=SECONDS / 10, most=SECONDS)
    monkeypatch.setattr("spark_drain_agent.checkpoint.lease.LEASE", short)


def run(run_id: str) -> SparkInternals:
    return cast(SparkInternals, Run(run_id, SECONDS))


def test_a_lease_keeps_changing_and_is_gone_when_released(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    mine = acquire_lease(files, run("one"))
    before = heartbeat(files)
    time.sleep(SECONDS)
    assert heartbeat(files) != before
    mine.release()
    assert not files.names("_drain")
    assert not beating()


@pytest.mark.parametrize(("error", "left"), [(SystemExit(3), True), (ValueError("no"), False), (None, False)])
def test_where_a_handler_may_have_left_a_call_open_the_lease_becomes_void(tmp_path: Path, error: BaseException | None, left: bool) -> None:
    """Py4J would give whoever asks the JVM next the answer to that call, once there is one."""
    files = files_in(tmp_path)
    with suppress(ValueError, SystemExit), acquire_lease(files, run("one")):
        if error is not None:
            raise error
    assert bool(files.names("_drain")) is left
    assert not beating()
    acquire_lease(files, run("two")).release()


@pytest.mark.parametrize("ended", [True, False])
def test_a_lease_is_renewed_as_long_as_there_is_a_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, ended: bool
) -> None:
    files, driver = files_in(tmp_path), Run("one", SECONDS)
    mine = acquire_lease(files, cast(SparkInternals, driver))

    def refused(name: str, text: str) -> None:
        raise ConnectionRefusedError

    with monkeypatch.context() as patch:
        patch.setattr(files, "write", refused)
        driver.jvm_ended = ended
        eventually(lambda: not beating() if ended else "could not be renewed" in caplog.text, "the lease to notice")
    assert ("could not be renewed" in caplog.text) is not ended
    mine.release()


def test_a_lease_that_its_own_run_has_acquired_anew_is_renewed_no_more(tmp_path: Path) -> None:
    """A flush that was given up leaves its lease; the start that finishes it, in the same driver, has one of its own."""
    given_up, files = files_in(tmp_path), files_in(tmp_path)
    acquire_lease(given_up, run("one"))
    second = acquire_lease(files, run("one"))
    eventually(lambda: len(beating()) == 1, what="the first one falls silent")
    second.release()
    time.sleep(SECONDS)
    assert not files.names("_drain")
    assert not beating()


def test_a_run_that_acquires_what_it_is_just_releasing_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    releasing, files = files_in(tmp_path), files_in(tmp_path)
    first = acquire_lease(releasing, run("one"))
    with ThreadPoolExecutor(1) as other:
        acquired, delete = [], releasing.delete_files

        def slowly(*names: str) -> None:
            acquired.append(other.submit(acquire_lease, files, run("one")))
            time.sleep(SECONDS)
            delete(*names)

        monkeypatch.setattr(releasing, "delete_files", slowly)
        first.release()
        second = acquired[0].result(60)
    assert files.read(LEASE_FILES[0]) == second.text
    second.release()
    assert not files.names("_drain")


def heartbeat(files: CheckpointFiles) -> list[str | None]:
    return [files.read(name) for name in LEASE_FILES]


def beating() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "spark-drain-lease"]


def test_another_run_is_refused_while_the_first_lives_and_not_after(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    first = acquire_lease(files, run("one"))
    with pytest.raises(CheckpointLeasedError, match="run one, which is alive"):
        acquire_lease(files, run("two"))
    first.release()
    acquire_lease(files, run("two")).release()


@pytest.mark.parametrize("ends", ["release", "fall_silent"])
@pytest.mark.parametrize("next_id", ["two", "one"])  # on Kubernetes in cluster mode both have one id
def test_a_run_of_this_process_that_was_stopped_is_waited_for_as_long_as_it_works_there(tmp_path: Path, ends: str, next_id: str) -> None:
    """An application may stop its SparkContext and make another one: nobody but the process itself could end what the first one holds."""
    files, stopped = files_in(tmp_path), Run("one", SECONDS)
    first = acquire_lease(files, cast(SparkInternals, stopped))
    stopped.stop_returned = True
    with ThreadPoolExecutor(1) as other:
        second = other.submit(acquire_lease, files_in(tmp_path), run(next_id))
        time.sleep(SECONDS * 1.5)
        assert not second.done()
        getattr(first, ends)()
        second.result(60).release()
    assert not files.names("_drain")


@pytest.mark.parametrize("left_by", ["gone", "two"])
def test_what_another_process_has_left_is_void_after_a_while(tmp_path: Path, left_by: str) -> None:
    """One with the same application id as well: `spark.app.id` may be a conf of both."""
    files = files_in(tmp_path)
    files.write("_drain/lease", json.dumps({"run": left_by, "seconds": SECONDS}))
    begun = time.monotonic()
    acquire_lease(files, run("two")).release()
    assert time.monotonic() - begun >= SECONDS


def test_ones_own_is_taken_at_once(tmp_path: Path) -> None:
    given_up = acquire_lease(files_in(tmp_path), run("one"))
    given_up.fall_silent()
    del given_up
    begun = time.monotonic()
    acquire_lease(files_in(tmp_path), run("one")).release()
    assert time.monotonic() - begun < SECONDS


def test_a_start_that_is_given_up_waits_for_no_lease(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    files.write(LEASE_FILES[0], json.dumps({"run": "other", "seconds": SECONDS}))
    with pytest.raises(StartGivenUpError), given_up_when(lambda: True):
        acquire_lease(files, run("one"))
    assert "other" in (files.read(LEASE_FILES[0]) or ""), "the other run may be alive"


def test_a_damaged_lease_is_waited_for_like_any_other(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    files.write("_drain/lease", "half a lea")
    acquire_lease(files, run("two")).release()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("seconds", ["1e12", "Infinity", "NaN", "-1", "1" + "0" * 400])
def test_no_lease_is_waited_for_longer_than_one_may_last(tmp_path: Path, seconds: str) -> None:
    files = files_in(tmp_path)
    files.write("_drain/lease", f'{{"run": "gone", "seconds": {seconds}}}')
    acquire_lease(files, run("two")).release()


def test_who_waits_says_for_whom_and_until_when(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files, told = files_in(tmp_path), list[str]()
    files.write("_drain/lease", json.dumps({"run": "gone", "seconds": SECONDS}))
    with caplog.at_level(logging.INFO, "spark_drain"):
        acquire_lease(files, run("two"), told.append).release()
    said, over = told
    assert over == ""
    assert said.startswith("waits until 2")
    assert f"for run gone, which has the lease {files.uri('_drain/lease')} " in said
    assert caplog.messages.count(said) == 1
    acquire_lease(files, run("three"), told.append).release()
    assert told == [said, over]


class _NotAtomic(Folder):
    """Has no file while it replaces one, as Hadoop's local filesystem."""

    def write(self, name: str, text: str) -> None:
        self.delete(name)
        time.sleep(SECONDS / 20)
        super().write(name, text)


def test_a_heartbeat_that_is_being_replaced_is_not_taken_for_a_release(tmp_path: Path) -> None:
    files = cast(CheckpointFiles, _NotAtomic(tmp_path))
    first = acquire_lease(files, run("one"))
    for _ in range(20):
        with pytest.raises(CheckpointLeasedError, match="run one, which is alive"):
            acquire_lease(files, run("two"))
    first.release()


def test_of_two_that_take_over_at_once_one_has_it_and_the_other_falls_silent(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    files.write("_drain/lease", json.dumps({"run": "gone", "seconds": SECONDS}))
    with ThreadPoolExecutor(2) as both:
        tries = [both.submit(acquire_lease, files, run(name)) for name in ("two", "three")]
        lost = [error for error in (done.exception() for done in tries) if error is not None]
    assert [type(error) for error in lost] == [CheckpointLeasedError]
    assert len(beating()) == 1
    next(done.result() for done in tries if done.exception() is None).release()


class _StandsStill(Folder):
    """Its process stands still while a heartbeat is written, until it is let go on."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.stands, self.goes_on = threading.Event(), threading.Event()

    def write(self, name: str, text: str) -> None:
        super().write(name, text)
        if name in LEASE_FILES and "heartbeat" in name:
            self.stands.set()
            self.goes_on.wait()


def test_a_driver_that_stood_still_in_its_heartbeat_changes_nothing_that_another_has_now(tmp_path: Path) -> None:
    files = _StandsStill(tmp_path)
    mine = acquire_lease(cast(CheckpointFiles, files), run("one"))
    files.stands.wait(60)
    theirs = acquire_lease(files_in(tmp_path), run("two"))
    files.goes_on.set()
    eventually(lambda: len(beating()) == 1, what="the heartbeat of the first to end")
    with pytest.raises(CheckpointLeasedError, match="stood still for longer than its lease"):
        files.delete("state")
    assert mine.lost
    theirs.release()


def test_a_driver_whose_heartbeat_is_stuck_looks_at_its_lease_before_each_change(tmp_path: Path) -> None:
    """It has looked once without a heartbeat, and another one takes over right after that."""
    files = _StandsStill(tmp_path)
    mine = acquire_lease(cast(CheckpointFiles, files), run("one"))
    files.stands.wait(60)
    time.sleep(SECONDS * 1.2)
    files.write("state/1", "nobody has taken the lease")
    files_in(tmp_path).write("_drain/lease", json.dumps({"run": "two", "seconds": SECONDS}))
    with pytest.raises(CheckpointLeasedError, match="stood still for longer than its lease"):
        files.write("state/1", "the other one has")
    files.goes_on.set()
    assert mine.lost


def test_a_lease_that_cannot_be_read_for_a_moment_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that has refused for longer than the lease, and refuses once more when it is asked whose the lease is."""
    files = _StandsStill(tmp_path)
    mine = acquire_lease(cast(CheckpointFiles, files), run("one"))
    files.stands.wait(60)
    time.sleep(SECONDS * 1.2)

    def refused(name: str) -> str:
        raise Py4JError("503")

    with monkeypatch.context() as patch:
        patch.setattr(files, "read", refused)
        with pytest.raises(Py4JError):
            files.write("state/1", "not yet")
    files.write("state/1", "nobody has taken the lease")
    assert not mine.lost
    files.goes_on.set()
    mine.release()


def test_a_lease_that_was_lost_is_acquired_anew_once_the_other_driver_has_released_it(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    lost = acquire_lease(files, run("one"))
    lost._released.set()  # its heartbeat stands still as well
    lost._thread.join()
    time.sleep(SECONDS * 1.2)
    theirs = acquire_lease(files_in(tmp_path), run("two"))
    with pytest.raises(CheckpointLeasedError, match="stood still for longer than its lease"):
        files.write("state/1", "")
    with pytest.raises(CheckpointLeasedError, match="run two"):
        acquire_lease(files, run("one"))
    with pytest.raises(CheckpointLeasedError, match="stood still for longer than its lease"):
        files.write("state/1", "")
    theirs.release()
    again = acquire_lease(files, run("one"))
    files.write("state/1", "of the one that has it")
    again.release()


def test_a_driver_that_stood_still_changes_nothing_that_another_has_now(tmp_path: Path) -> None:
    """As one that was stopped, or whose machine slept: the other may have ended the drain, and the next version may be running."""
    files, others = files_in(tmp_path), files_in(tmp_path)
    files.write("state/1", "of the drained version")
    mine = acquire_lease(files, run("one"))
    mine._released.set()  # its heartbeat stands still as well
    mine._thread.join()
    time.sleep(SECONDS * 1.2)
    files.write("state/2", "nobody has taken the lease")
    time.sleep(SECONDS * 1.2)
    theirs = acquire_lease(others, run("two"))
    changes: list[Callable[[], None]] = [
        lambda: files.delete("state"),
        lambda: files.write("state/1", ""),
        lambda: files.merge("state", "away"),
        lambda: files.copy("state", "away"),
    ]
    for change in changes:
        with pytest.raises(CheckpointLeasedError, match="stood still for longer than its lease"):
            change()
    assert mine.lost
    assert others.below("state") == ["state/1", "state/2"]
    mine.release()
    theirs.release()
    assert not files.names("_drain")
    files.delete("state")


def test_where_no_thread_can_keep_it_there_is_no_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drain beyond its point of no return tries again what an OSError has ended, until the system has threads."""
    files = files_in(tmp_path)

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        with pytest.raises(OSError, match="has no thread that keeps it alive: can't start new thread"):
            acquire_lease(files, run("first"))
    acquire_lease(files, run("second")).release()
