"""A main that ends before the thread that awaits its query, on Python from 3.12 on, whose shutdown starts no thread any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.harness import Drains, Driver, Feed, eventually, exactly, ids_in, newest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_drain_and_the_next_start_once_main_has_ended(tmp_path: Path) -> None:
    feed, drains = Feed(tmp_path / "input"), Drains(tmp_path / "store")
    for _ in ("first version", "next version"):
        feed.add(2)
        driver = Driver("outlived.py", tmp_path, store=drains)
        try:
            drains.reaches(drains.write("CatchUp"), "Drained", driver=driver)
            drains.clean_up()
            assert driver.wait() == 0, driver.tail()
        finally:
            driver.close()
        assert (tmp_path / "over").exists()
        assert ids_in(tmp_path / "out") == exactly(feed.ids)


def test_a_program_that_attaches_the_agent_itself_is_told_the_way_out(tmp_path: Path) -> None:
    feed, drains = Feed(tmp_path / "input"), Drains(tmp_path / "store")
    feed.add(2)
    driver = Driver("outlived.py", tmp_path, drains.location, store=None)
    try:
        drain = drains.reaches(drains.write(), "Rejected", driver=driver)
        assert (drain["reason"], "by `python -m spark_drain_agent`" in drain["message"]) == ("UnsupportedSession", True)
        feed.add()
        eventually(lambda: newest(tmp_path / "checkpoint", "commits") >= 2, "the query to read on", alive=driver)
    finally:
        driver.close()
