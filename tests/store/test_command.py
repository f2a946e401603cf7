"""The drain command, run as people run it: a process of its own over a folder."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from spark_drain_store import Channel, DrainReport, DrainState, QueryReport, open_channel
from spark_drain_store.drains import Drains

Command = Callable[..., "subprocess.CompletedProcess[str]"]
NO_REPORT = "no report of it can be read: no agent has answered yet, or its report was removed or is malformed"
NO_LOCATIONS = ["file:", "folder", "configmap:only-a-namespace", "configmap:/app", "configmap:ns/a/b", "configmap:../app", "http://x"]
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n")


def argv(location: str, *words: str) -> list[str]:
    return [sys.executable, "-m", "spark_drain_store", "--metadata-store", location, "drain", *words]


@pytest.fixture
def location(tmp_path: Path) -> str:
    return f"file:{tmp_path / 'store'}"


@pytest.fixture
def channel(location: str) -> Channel:
    return open_channel(location)


@pytest.fixture
def drain(location: str) -> Command:
    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(argv(location, *words), capture_output=True, text=True, check=False)

    return run


def written(drain: Command, *words: str) -> str:
    done = drain("write", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert UUID.fullmatch(done.stdout)
    return done.stdout.strip()


def shown(drain: Command) -> dict[str, Any]:
    done = drain("show")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def report(drain_id: str, state: DrainState, **fields: Any) -> dict[str, str | None]:
    return {
        drain_id: DrainReport(drain_id=drain_id, runs=("app-1", "app-2"), state=state, updated_at=datetime.now(UTC), **fields).to_json()
    }


def refused(done: "subprocess.CompletedProcess[str]", said: str) -> None:
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr), f"not one line: {done.stderr!r}"
    assert said in done.stderr


def test_whoever_reads_may_have_enough(drain: Command, location: str) -> None:
    written(drain)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(argv(location, "show"), stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_application_without_drains_shows_none(drain: Command, location: str) -> None:
    """The location may be mistyped."""
    done = drain("show")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"drains": []})
    assert done.stderr == f"note: there are no drains in {location}\n"


def test_a_written_drain_is_in_the_store_and_shown_as_requested(drain: Command, channel: Channel) -> None:
    drain_id = written(drain, "--run-id", "app-1", "--mode", "Drain", "--option", "checkpoint.policy=Reseed", "--option", "queries=a,b")
    notification = Drains.read(channel).notifications[drain_id]
    assert (notification.run_id, notification.mode) == ("app-1", "Drain")
    assert notification.options == {"checkpoint.policy": "Reseed", "queries": "a,b"}
    assert abs((datetime.now(UTC) - notification.created_at).total_seconds()) < 60
    assert shown(drain) == {
        "drains": [{"uuid": drain_id, "runId": "app-1", "state": "Requested", "reason": "", "message": NO_REPORT, "queries": []}]
    }


def test_a_drain_whose_report_was_removed_is_not_said_to_be_unanswered(drain: Command, channel: Channel) -> None:
    drain_id = written(drain)
    channel.reports.write(report(drain_id, DrainState.DRAINED))
    channel.reports.write({drain_id: None})
    assert shown(drain)["drains"][0]["message"] == NO_REPORT


def test_a_drain_without_a_run_id_is_for_the_run_that_sees_it_first(drain: Command) -> None:
    written(drain)
    assert shown(drain)["drains"][0]["runId"] is None


def test_a_reported_drain_is_shown_with_its_last_run_and_its_queries(drain: Command, channel: Channel) -> None:
    drain_id = written(drain)
    query = QueryReport(id="q1", name="clicks", state="Drained", end_offsets={"topic": '{"0":7}'})
    channel.reports.write(report(drain_id, DrainState.REPORTING, reason="Waiting", message="2 of 3 executors", queries=(query,)))
    [row] = shown(drain)["drains"]
    assert (row["uuid"], row["runId"], row["state"], row["reason"]) == (drain_id, "app-2", "Reporting", "Waiting")
    assert row["message"] == "2 of 3 executors"
    assert row["queries"][0]["name"] == "clicks"
    assert row["queries"][0]["endOffsets"] == {"topic": '{"0":7}'}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mode", "Halt"), "mode 'Halt' must be one of Drain, CatchUp, Stop"),
        (("--option", "checkpoint.policy"), "--option 'checkpoint.policy' must be NAME=VALUE"),
        (("--option", "checkpoint.policy=Sow"), "option 'checkpoint.policy' must be one of Auto, Reseed, Continue, Keep, not 'Sow'"),
        (("--option", "color=red"), "option 'color' (value 'red') is not known"),
        (("--mode", "Stop", "--option", "checkpoint.policy=Keep"), "must be absent with mode Stop"),
        (("--run-id", ""), "--run-id '' must be the id of a run (spark.app.id): leave it out"),
        (("--run-id", " "), "--run-id ' ' must be the id of a run"),
        (("--option", "queries=a", "--option", "queries=b"), "--option 'queries' is given twice, as 'a' and as 'b'"),
    ],
    ids=str,
)
def test_a_wrong_request_is_refused_in_one_line_and_writes_nothing(
    drain: Command, channel: Channel, words: tuple[str, ...], said: str
) -> None:
    refused(drain("write", *words), said)
    assert channel.requests.read().entries == {}


def test_a_second_drain_is_refused_while_one_is_active(drain: Command, channel: Channel) -> None:
    first = written(drain)
    refused(drain("write"), f"drain {first} of this application is active: wait for its end, or withdraw it (a plan ends so)")
    channel.reports.write(report(first, DrainState.STALLED))
    refused(drain("write"), first)


@pytest.mark.parametrize("state", [DrainState.DRAINED, DrainState.WITHDRAWN, DrainState.FAILED, DrainState.REJECTED])
def test_after_a_finished_drain_the_next_one_may_come(drain: Command, channel: Channel, state: DrainState) -> None:
    first = written(drain)
    channel.reports.write(report(first, state))
    second = written(drain)
    assert [row["uuid"] for row in shown(drain)["drains"]] == [first, second]


def test_of_drains_written_at_the_same_time_one_wins(location: str, channel: Channel) -> None:
    writers = [subprocess.Popen(argv(location, "write"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    ends = [(*writer.communicate(timeout=60), writer.returncode) for writer in writers]
    [winner] = [out.strip() for out, _, code in ends if code == 0]
    assert list(Drains.read(channel).notifications) == [winner]
    assert [error for _, error, code in ends if code] == [
        f"error: drain {winner} of this application is active: wait for its end, or withdraw it (a plan ends so)\n"
    ] * 3


def test_withdrawing_marks_the_notification_and_leaves_the_answer_to_the_agent(drain: Command, channel: Channel) -> None:
    drain_id = written(drain, "--option", "execution=AfterApproval")
    assert not Drains.read(channel).notifications[drain_id].withdrawn
    done = drain("withdraw", drain_id)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    notification = Drains.read(channel).notifications[drain_id]
    assert notification.withdrawn
    assert shown(drain)["drains"][0]["message"] == "withdrawn; no report of it can be read"
    assert notification.options == {"execution": "AfterApproval"}
    assert shown(drain)["drains"][0]["state"] == "Requested"


def test_what_is_past_its_point_of_no_return_is_not_withdrawn(drain: Command, channel: Channel) -> None:
    drain_id = written(drain)
    channel.reports.write(report(drain_id, DrainState.FLUSHING))
    assert "is past its point of no return (state Flushing)" in drain("withdraw", drain_id).stderr
    channel.reports.write(report(drain_id, DrainState.DRAINED))
    said = f"note: drain {drain_id} has ended (state Drained) and is not withdrawn any more: `drain cleanup` removes it\n"
    assert drain("withdraw", drain_id).stderr == said
    assert drain("cleanup").returncode == 0
    written(drain)


def test_approving_marks_the_notification_and_changes_nothing_else(drain: Command, channel: Channel) -> None:
    uuid = written(drain, "--option", "execution=AfterApproval")
    asked = Drains.read(channel).notifications[uuid]
    assert not asked.approved
    done = drain("approve", uuid)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert Drains.read(channel).notifications[uuid] == replace(asked, approved=True)
    channel.reports.write(report(uuid, DrainState.WITHDRAWN))
    said = f"note: drain {uuid} has ended (state Withdrawn) and is not carried out any more: `drain cleanup` removes it\n"
    assert drain("approve", uuid).stderr == said


@pytest.mark.parametrize(("words", "execution"), [((), "Immediate"), (("--option", "execution=PlanOnly"), "PlanOnly")])
def test_only_a_drain_that_waits_for_approval_can_be_approved(
    drain: Command, channel: Channel, words: tuple[str, ...], execution: str
) -> None:
    uuid = written(drain, *words)
    refused(drain("approve", uuid), f"drain {uuid} has execution {execution}, and only AfterApproval waits for an approval")
    assert not Drains.read(channel).notifications[uuid].approved


@pytest.mark.parametrize("verb", ["approve", "withdraw"])
def test_an_unknown_drain_can_be_neither_approved_nor_withdrawn(drain: Command, verb: str) -> None:
    written(drain)
    refused(drain(verb, "no-such-drain"), "there is no drain 'no-such-drain': `drain show` lists them")


def test_cleanup_removes_finished_drains_and_keeps_the_active_one(drain: Command, channel: Channel) -> None:
    finished = written(drain)
    channel.reports.write(report(finished, DrainState.DRAINED))
    channel.reports.write(report("forgotten", DrainState.FLUSHING))  # its notification was removed by another hand
    active = written(drain)
    done = drain("cleanup")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"removed": [finished, "forgotten"]})
    assert [row["uuid"] for row in shown(drain)["drains"]] == [active]
    again = drain("cleanup")
    assert json.loads(again.stdout) == {"removed": []}
    assert f"note: drain {active} has not ended (state Requested) and stays" in again.stderr
    assert "or end it with `drain withdraw`" in again.stderr
    for state in (DrainState.FLUSHING, DrainState.STALLED):
        channel.reports.write(report(active, state))
        told = drain("cleanup").stderr
        assert (f"(state {state})" in told, "withdraw" in told) == (True, False)
    channel.reports.write(report(active, DrainState.DRAINED))
    assert drain("cleanup").stderr == ""


def test_cleanup_removes_a_withdrawn_request_that_nobody_has_answered(drain: Command) -> None:
    gone = written(drain, "--run-id", "spark-before")
    assert json.loads(drain("cleanup").stdout) == {"removed": []}
    drain("withdraw", gone)
    assert json.loads(drain("cleanup").stdout) == {"removed": [gone]}
    assert shown(drain) == {"drains": []}


def test_cleanup_all_removes_the_active_drain_too(drain: Command, channel: Channel) -> None:
    active = written(drain)
    channel.reports.write(report(active, DrainState.FLUSHING))
    assert json.loads(drain("cleanup", "--all").stdout) == {"removed": [active]}
    assert shown(drain) == {"drains": []}
    assert channel.requests.read().entries == channel.reports.read().entries == {}


def test_what_cannot_be_read_is_shown_and_stops_nobody(drain: Command, channel: Channel) -> None:
    channel.requests.write({"broken": '{"version": 1, "uuid": "broken", "createdAt": 7}'})
    drain_id = written(drain)
    answer = shown(drain)
    assert [row["uuid"] for row in answer["drains"]] == [drain_id]
    assert answer["malformed"] == ["drain notification 'broken': field 'createdAt' must be an RFC 3339 time with zone, not 7"]


@pytest.mark.parametrize("location", NO_LOCATIONS)
def test_a_store_that_is_no_location_is_refused(location: str, drain: Command) -> None:
    refused(drain("show"), f"metadata store {location!r} must be file:DIR or configmap:NAMESPACE/APPLICATION")


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("file://host/drains", "must be a folder of this machine: file:/drains"),
        ("file:~/drains", "without '~', which only a shell replaces"),
    ],
)
def test_a_folder_that_is_not_meant_is_refused(location: str, said: str, drain: Command) -> None:
    refused(drain("write"), f"metadata store {location!r} must ")
    refused(drain("show"), said)


def test_a_store_that_cannot_be_made_is_named() -> None:
    refused(
        subprocess.run(argv("file:/proc/drains", "write"), capture_output=True, text=True, check=False),
        "the metadata store /proc/drains/requests cannot be created",
    )


@pytest.mark.parametrize("verb", ["write", "show", "cleanup"])
@pytest.mark.parametrize("below", ["", "/drains"])
def test_a_store_that_is_a_file_is_named(tmp_path: Path, verb: str, below: str) -> None:
    (tmp_path / "store").write_text("a file, not a folder")
    location = f"file:{tmp_path / 'store'}{below}"
    refused(
        subprocess.run(argv(location, verb), capture_output=True, text=True, check=False),
        f"metadata store {location!r} must be a folder, and {tmp_path / 'store'} is a file",
    )


def test_a_store_that_is_a_device_is_named() -> None:
    refused(
        subprocess.run(argv("file:/dev/null", "show"), capture_output=True, text=True, check=False),
        "metadata store 'file:/dev/null' must be a folder, and /dev/null is a file",
    )


def test_a_folder_that_goes_away_meanwhile_is_no_file(tmp_path: Path) -> None:
    folder, over = tmp_path / "store", threading.Event()
    folder.mkdir()

    def move() -> None:
        while not over.is_set():
            folder.rename(tmp_path / "elsewhere")
            (tmp_path / "elsewhere").rename(folder)

    with ThreadPoolExecutor(1) as pool:
        moved = pool.submit(move)
        try:
            for _ in range(20_000):
                open_channel(f"file:{folder}")
        finally:
            over.set()
        moved.result()


def test_words_of_an_error_do_not_command_the_terminal() -> None:
    refused(
        subprocess.run(argv("file:/proc/a\x1b[2Jb", "write"), capture_output=True, text=True, check=False),
        "the metadata store /proc/a\\x1b[2Jb/requests cannot be created",
    )


def test_config_maps_without_the_kubernetes_package(tmp_path: Path) -> None:
    """It is imported where it is used; here a module that cannot be imported stands in its way."""
    (tmp_path / "kubernetes.py").write_text("raise ModuleNotFoundError(\"No module named 'kubernetes'\", name='kubernetes')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = argv("configmap:default/clicks", "show")
    refused(
        subprocess.run(words, capture_output=True, text=True, check=False, env=environment),
        "metadata store 'configmap:default/clicks' needs the kubernetes package: in a clone of spark-drain run "
        "python3 -m pip install '.[agent]'",
    )


@pytest.mark.parametrize(
    ("output", "code", "said"), [(">&-", 0, ""), (">/dev/full", 1, "No space left on device; `drain show` says what was done")]
)
def test_an_output_that_takes_nothing(location: str, channel: Channel, output: str, code: int, said: str) -> None:
    done = subprocess.run(["bash", "-c", f'"$@" {output}', "bash", *argv(location, "write")], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == (1 if said else 0)
    assert len(Drains.read(channel).notifications) == 1


def test_words_that_are_no_command_get_the_usage(location: str, drain: Command) -> None:
    done = drain("start")
    assert done.returncode == 2
    assert "invalid choice: 'start'" in done.stderr
    assert "usage: python -m spark_drain_store" in done.stderr


def test_a_request_that_was_withdrawn_before_anybody_saw_it_is_in_nobodys_way(drain: Command, channel: Channel) -> None:
    for_another_run = written(drain, "--run-id", "gone")
    refused(drain("write"), for_another_run)
    assert drain("withdraw", for_another_run).returncode == 0
    written(drain)


def test_what_cannot_be_read_goes_with_cleanup_all(drain: Command, channel: Channel) -> None:
    channel.requests.write({"broken": "{garbage"})
    channel.reports.write({"half": '{"version": 1'})
    assert len(shown(drain)["malformed"]) == 2
    assert json.loads(drain("cleanup").stdout) == {"removed": []}
    assert sorted(json.loads(drain("cleanup", "--all").stdout)["removed"]) == ["broken", "half"]
    assert shown(drain) == {"drains": []}
