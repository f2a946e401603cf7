"""One driver with several queries: what is refused leaves it undisturbed, what is asked of it is carried out, and version 2 reads on.

The driver is started once for all of these tests, again only after a test in which it ended.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from spark_drain_store import DrainNotification, open_channel
from spark_drain_store.drains import read_notifications, write_notification

from tests.agent.harness import Drains, Driver, Feed, eventually, exactly, ids_in, newest, rows_in

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200), pytest.mark.xdist_group("many queries")]


class Application:
    """The application ``many.py``, its input, output and drains."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.feed = Feed(base / "input")
        self.drains = Drains(base / "store")
        self.driver: Driver | None = None

    def start(self, *arguments: str, **confs: str) -> Driver:
        """Start the driver unless it runs."""
        if self.driver is None or not self.driver.running:
            self.driver = Driver("many.py", self.base, *arguments, store=self.drains, confs=confs)
        return self.driver

    def reads(self, ids: range) -> None:
        """Wait until all three queries have read and committed these events."""
        for query in ("files", "dedup"):
            eventually(lambda query=query: set(ids) <= set(ids_in(self.base / "out" / query)), f"{query} to write {ids}", alive=self.driver)  # type: ignore[misc]
        counts = self.base / "checkpoints/counts"

        def named() -> bool:
            logs = (counts / "sources/0").glob("[0-9]*")
            return any(f"{self.feed.files - 1:03}.json" in path.read_text() for path in logs)

        eventually(named, "counts to read the newest file", alive=self.driver)
        eventually(lambda: newest(counts, "offsets") == newest(counts, "commits"), "counts to commit", alive=self.driver)

    def runs_on(self) -> None:
        """Check that new input still goes through every query."""
        self.reads(self.feed.add())


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    application = Application(tmp_path_factory.mktemp("many"))
    application.feed.add(2)
    yield application
    if application.driver is not None:
        application.driver.close()


@pytest.fixture
def running(application: Application) -> Iterator[Application]:
    application.start("v1", "with-strays")
    application.reads(application.feed.ids)
    yield application
    application.drains.clean_up(everything=True)


KEEP = {"afterDrain": "Keep"}


@pytest.mark.parametrize(
    ("mode", "options", "reason", "words"),
    [
        ("Drain", {"queries": "counts"}, "UnsupportedOption", "afterDrain 'Keep'"),
        ("Drain", {"queries": "counts,nobody", **KEEP}, "UnknownQuery", "queries nobody are not running"),
        ("Drain", {"queries": "dedup", **KEEP}, "StateWouldBeLost", "set stateLossPolicy to 'Accept'"),
        ("Drain", {"queries": "nowhere", **KEEP}, "UnsupportedQuery", "no checkpointLocation"),
        ("Drain", {"queries": "memories", **KEEP}, "UnsupportedQuery", "the memory sink"),
        ("Drain", {}, "StateWouldBeLost", "query 'dedup'"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalnum() else "",
)
def test_rejected_by_name(running: Application, mode: str, options: dict[str, str], reason: str, words: str) -> None:
    drain_id = running.drains.write(mode, **options)
    drain = running.drains.reaches(drain_id, "Rejected", driver=running.driver)
    assert drain["reason"] == reason
    assert words in drain["message"]


def test_notification_of_another_run_is_ignored(running: Application) -> None:
    stale = running.drains.write(run_id="local-1")
    running.runs_on()
    assert running.drains.show(stale)["state"] == "Requested"


def test_plan_only_touches_nothing(running: Application) -> None:
    drain_id = running.drains.write(execution="PlanOnly", stateLossPolicy="Accept", queries="counts,dedup,files", **KEEP)
    drain = running.drains.reaches(drain_id, "Acknowledged", reason="Planned", driver=running.driver)
    plans = {query["name"]: query for query in drain["queries"]}
    assert {name: plan["checkpointPolicy"] for name, plan in plans.items()} == {"counts": "Reseed", "dedup": "Reseed", "files": "Continue"}
    assert [operator["disposition"] for operator in plans["counts"]["operators"]] == ["flushed"]
    assert [operator["disposition"] for operator in plans["dedup"]["operators"]] == ["forgotten"]
    assert plans["files"]["operators"] == []
    running.runs_on()
    assert not list(running.base.glob("checkpoints/*/_drain"))


def test_withdrawn_while_a_batch_is_in_flight(running: Application) -> None:
    (running.base / "block").touch()
    running.feed.add(3)  # enough for the next batches to emit windows
    eventually((running.base / "blocked").exists, "a batch in flight", alive=running.driver)
    drain_id = running.drains.write(queries="counts,files", **KEEP)
    running.drains.reaches(drain_id, "Stopping", driver=running.driver)
    running.drains.withdraw(drain_id)
    drain = running.drains.reaches(drain_id, "Withdrawn", driver=running.driver)
    assert drain["withdrawal"] == "Withdrawn"
    assert [query["state"] for query in drain["queries"]] == ["Running"] * 2
    (running.base / "block").unlink()
    running.reads(running.feed.ids)
    running.runs_on()


def test_deadline_passed_before(running: Application) -> None:
    late = DrainNotification(
        drain_id=str(uuid.uuid4()),
        created_at=datetime.now(UTC),
        deadline=datetime.now(UTC) - timedelta(seconds=1),
        options={"queries": "counts,files", "afterDrain": "Keep"},
    )
    write_notification(open_channel(running.drains.location), late)
    drain = running.drains.reaches(late.drain_id, "Failed", driver=running.driver)
    assert drain["reason"] == "DeadlineExceeded"
    running.runs_on()


def test_a_callback_before_the_flush_may_veto(running: Application) -> None:
    (running.base / "veto").touch()
    drain_id = running.drains.write(queries="counts,files", **KEEP)
    drain = running.drains.reaches(drain_id, "Failed", driver=running.driver)
    assert drain["reason"] == "CallbackFailed"
    assert "save raised RuntimeError: the model cannot be saved" in drain["message"]
    (running.base / "veto").unlink()
    running.runs_on()


def test_malformed_notification_is_reported(running: Application) -> None:
    channel = open_channel(running.drains.location)
    channel.requests.write({"broken": '{"version": 1, "uuid": "broken"}'})
    drain = eventually(
        lambda: (
            next((item for item in [running.drains.show("broken")] if item["state"] == "Rejected"), None)
            if (running.drains.folder / "reports" / "drain-v1.broken").exists()
            else None
        ),
        "the malformed notification to be reported",
        alive=running.driver,
    )
    assert drain["reason"] == "MalformedNotification"
    assert "'createdAt'" in drain["message"]
    channel.requests.write({"broken": None})


def test_drained_after_approval_then_an_incompatible_version_reads_on(running: Application) -> None:
    assert running.driver is not None
    wanted = {"stateLossPolicy": "Accept", "queries": "counts,dedup,files", "execution": "AfterApproval"}
    drain_id = running.drains.write(**wanted, **KEEP)
    running.drains.reaches(drain_id, "Acknowledged", reason="AwaitingApproval", driver=running.driver)
    running.runs_on()
    _approve(running.drains, drain_id)
    drain = running.drains.reaches(drain_id, "Drained", driver=running.driver)

    before = running.feed.ids
    queries = {query["name"]: query for query in drain["queries"]}
    assert {name: query["state"] for name, query in queries.items()} == dict.fromkeys(queries, "Drained")
    assert queries["counts"]["operators"][0]["rowsBefore"] > 0
    assert queries["counts"]["operators"][0]["rowsAfter"] == 0
    assert queries["counts"]["flushBatchId"] == queries["counts"]["lastBatchId"] + 1
    assert queries["files"]["flushBatchId"] is None
    assert all('"logOffset"' in offset for query in queries.values() for offset in query["endOffsets"].values())
    for name in ("counts", "dedup", "files"):
        assert ids_in(running.base / "out" / name) == exactly(before), name
    windows = rows_in(running.base / "out/counts")
    assert {row["pane"] for row in windows} == {True, False}
    assert all(row["udf_pane"] is row["pane"] for row in windows)
    assert not any(row["pane"] for row in rows_in(running.base / "out/dedup"))
    _check_callbacks(running.base, drain)
    assert not (running.base / "main-returned").exists()

    unread = running.feed.add()
    running.drains.clean_up()
    eventually(lambda: "the driver may go" in running.driver.log, "the drain to let go", alive=running.driver)  # type: ignore[union-attr]
    running.driver.close()  # the strays run on, so main waits for them
    assert not (running.base / "main-returned").exists()
    assert unread.start not in ids_in(running.base / "out/counts")

    running.start("v2", **{"spark.sql.shuffle.partitions": "3"})
    running.reads(running.feed.ids)
    running.runs_on()
    again = running.drains.write(stateLossPolicy="Accept")
    drain = running.drains.reaches(again, "Drained", driver=running.driver)
    assert {query["name"]: query["checkpointPolicy"] for query in drain["queries"]} == {
        "counts": "Reseed",
        "dedup": "Reseed",
        "files": "Continue",
    }
    for name in ("counts", "dedup", "files"):
        assert ids_in(running.base / "out" / name) == exactly(running.feed.ids), name
    generations = {event: row["generation"] for row in rows_in(running.base / "out/counts") for event in row["ids"]}
    assert {generations[event] for event in before} == {0}
    assert {generations[event] for event in range(unread.start, len(running.feed.ids))} == {1}
    running.drains.clean_up()
    assert running.driver.wait() == 0, running.driver.tail()
    assert (running.base / "main-returned").exists()


def _check_callbacks(base: Path, drain: dict[str, Any]) -> None:
    before, after = (json.loads((base / f"{when}.json").read_text()) for when in ("before", "after"))
    assert {(told["uuid"], told["mode"]) for told in (before, after)} == {(drain["uuid"], "Drain")}
    assert before["queries"] == {"counts": {}, "dedup": {}, "files": {}}
    assert after["queries"] == {query["name"]: query["endOffsets"] for query in drain["queries"]}
    assert "tell_others did not return within 0.5 s" in drain["message"]


def _approve(drains: Drains, drain_id: str) -> None:
    channel = open_channel(drains.location)
    notifications, _ = read_notifications(channel.requests.read())
    channel.requests.write({drain_id: replace(notifications[drain_id], approved=True).to_json()})
