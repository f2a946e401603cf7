"""Sessions of Spark Connect: no drain can reach their queries, so each is rejected by name at once, and the application runs on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.harness import Drains, Driver, eventually, newest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TOKEN = "between-these-two"


def test_rejected_by_name_and_not_disturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server in the driver's own process, and another driver that is a client of it."""
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", TOKEN)
    monkeypatch.setenv("SPARK_TESTING", "1")  # Spark then takes any free port instead of a fixed one
    server_side, client_side = tmp_path / "server", tmp_path / "client"
    server_side.mkdir()
    client_side.mkdir()
    early = Drains(server_side / "store")
    before = early.write()
    server = Driver("connect.py", server_side, "api", store=early)
    client = None
    try:
        eventually((server_side / "started").exists, "the query to start", 120, server)
        assert_rejected(early, server, before)
        port = (server_side / "port").read_text()
        drains = Drains(client_side / "store")
        client = Driver("connect.py", client_side, f"sc://localhost:{port}", store=drains)
        eventually((client_side / "started").exists, "the client's query to start", 120, client)
        for store, driver, base, how in ((early, server, server_side, "api"), (drains, client, client_side, "sc:")):
            assert_rejected(store, driver, store.write())
            assert "Spark Connect" in (base / "refused").read_text()
            assert "spark.api.mode=classic" in (base / "refused").read_text()
            assert_goes_on(base / f"checkpoint-{how}")
            store.clean_up(everything=True)
            assert_rejected(store, driver, store.write("Stop"))
        for base, driver in ((client_side, client), (server_side, server)):
            (base / "leave").touch()
            assert driver.wait() == 7, driver.tail()
            assert (base / "left").read_text() == "True"
    finally:
        if client is not None:
            client.close()
        server.close()


def assert_rejected(drains: Drains, driver: Driver, uuid: str) -> None:
    eventually(lambda: drains.show(uuid)["state"] == "Rejected", f"{uuid} to be rejected", 60, driver)
    drain = drains.show(uuid)
    assert drain["reason"] == "UnsupportedSession"
    assert "Spark Connect" in drain["message"]
    assert "spark.api.mode=classic" in drain["message"]


def assert_goes_on(checkpoint: Path) -> None:
    committed = newest(checkpoint, "commits")
    eventually(lambda: newest(checkpoint, "commits") > committed, "more batches")
