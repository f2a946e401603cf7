"""PYSPARK_PIN_THREAD=false: any of the JVM's threads makes a call of a Python thread."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agent.harness import Drains, Driver, Feed, eventually, exactly, ids_in

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def drains(tmp_path: Path) -> Drains:
    return Drains(tmp_path / "store")


@pytest.fixture
def run(tmp_path: Path, feed: Feed, drains: Drains) -> Iterator[Callable[[str], Driver]]:
    started: list[Driver] = []

    def start(script: str) -> Driver:
        started.append(Driver(script, tmp_path, store=drains, prefix=("env", "PYSPARK_PIN_THREAD=false")))
        return started[-1]

    yield start
    for driver in started:
        driver.close()


def test_a_batch_stops_one_query_and_starts_another_one_while_the_drain_waits_for_it(
    run: Callable[[str], Driver], drains: Drains, tmp_path: Path
) -> None:
    driver = run("unpinned.py")
    eventually((tmp_path / "began").exists, "a batch to begin", alive=driver)
    asked = drains.write()
    drains.reaches(asked, "Stopping", reason="BatchRunning", driver=driver)
    (tmp_path / "go").touch()
    assert {query["name"] for query in drains.reaches(asked, "Drained", driver=driver)["queries"]} == {"batching", "started"}
    assert "PYSPARK_PIN_THREAD=false" in (tmp_path / "told").read_text()
    drains.clean_up()
    assert driver.wait() == 0, driver.tail()


@pytest.mark.soak
def test_drains_beside_threads_that_ask_for_progress(run: Callable[[str], Driver], drains: Drains, tmp_path: Path, feed: Feed) -> None:
    """The lock of the query's progress belongs to a thread of the JVM, which the calls of others had taken over before it was let go."""
    driver = run("polled.py")
    for _ in range(3):
        eventually(lambda: _has_read(tmp_path, feed), "the query to read", alive=driver)
        asked = drains.write(afterDrain="Keep")
        drains.reaches(asked, "Drained", driver=driver)
        assert ids_in(tmp_path / "out") == exactly(feed.ids)
        drains.clean_up()
        feed.add()
    threads = json.loads((tmp_path / "threads").read_text())
    assert threads["kept"] == 1
    assert threads["any"] > 1, "the test shows nothing where one connection makes all calls"


def _has_read(base: Path, feed: Feed) -> bool:
    offsets = sorted((base / "checkpoint/offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return bool(offsets) and f'"logOffset":{feed.files - 1}' in offsets[-1].read_text()


@pytest.mark.soak
def test_a_bounded_query_that_was_put_off_has_the_default_folder_of_its_start(
    run: Callable[[str], Driver], drains: Drains, tmp_path: Path, feed: Feed
) -> None:
    driver = run("put_off.py")
    eventually((tmp_path / "ready").exists, "the first query to read", alive=driver)
    asked = drains.write(afterDrain="Keep")
    drains.reaches(asked, "Drained", driver=driver)
    (tmp_path / "go").touch()
    eventually((tmp_path / "started").exists, "the start to return", alive=driver)
    drains.clean_up()
    assert driver.wait() == 0, driver.tail()
    assert (tmp_path / "pools").read_text() == "reports", "main's calls are made by the thread of the JVM that has made them before"
    assert ids_in(tmp_path / "bounded") == exactly(feed.ids)
    assert (tmp_path / "then").is_dir()
    assert not (tmp_path / "later").exists()
