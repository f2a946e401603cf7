"""SEP-22's store of placement messages, over all three stores: read and write of requests and responses, and deletion."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from spark_drain_store import Channel, DrainNotification, MetadataStore, StoreError, open_channel
from spark_drain_store.cli import main
from spark_drain_store.drains import Drains, write_notification
from spark_drain_store.memory import MemoryStore
from spark_drain_store.placement_messages import DEFAULT_EXPIRY_SECONDS, PlacementResponse, PlacementStatus, UnsupportedDestinationError
from spark_drain_store.placements import (
    Placements,
    delete_all_placements,
    delete_placement,
    delete_placement_request,
    delete_placement_response,
    read_placement_request,
    read_placement_response,
    withdraw_placement,
    write_placement_request,
    write_placement_response,
)
from spark_drain_store.topics import PLACEMENT

Opener = Callable[[], MetadataStore]
NOW = datetime(2026, 11, 24, tzinfo=UTC)


@pytest.fixture
def store(opener: Opener) -> MetadataStore:
    return opener()


@pytest.fixture
def channel(store: MetadataStore) -> Channel:
    return Channel.over(store, MemoryStore(), topic=PLACEMENT)


def response(placement_id: str, status: PlacementStatus = PlacementStatus.SUCCEEDED) -> PlacementResponse:
    return PlacementResponse(placement_id=placement_id, status=status, updated_at=NOW)


class TestStore:
    def test_an_empty_store(self, channel: Channel) -> None:
        placements = Placements.read(channel)
        assert (dict(placements.requests), dict(placements.responses), dict(placements.malformed)) == ({}, {}, {})
        assert placements.status("p") is PlacementStatus.CREATED

    def test_read_write_request(self, channel: Channel) -> None:
        placement_id = write_placement_request(channel, "4", "node-2", run_id="spark-1", expiry_seconds=10, created_at=NOW)
        request = read_placement_request(channel, placement_id)
        assert request is not None
        assert (request.executor_id, request.destination_host, request.run_id, request.expiry_seconds) == ("4", "node-2", "spark-1", 10)
        assert request.created_at == NOW
        assert read_placement_request(channel, "another") is None

    def test_an_expiry_is_optional(self, channel: Channel) -> None:
        request = read_placement_request(channel, write_placement_request(channel, "4", "LAST_SEEN"))
        assert request is not None
        assert (request.expiry_seconds, request.run_id) == (DEFAULT_EXPIRY_SECONDS, None)

    def test_read_write_response(self, channel: Channel) -> None:
        write_placement_response(channel, response("p", PlacementStatus.ACCEPTED))
        write_placement_response(channel, response("p"))
        assert read_placement_response(channel, "p") == response("p")
        assert read_placement_response(channel, "q") is None

    def test_deletion(self, channel: Channel) -> None:
        first, second, third = (write_placement_request(channel, "4", "node-2") for _ in range(3))
        for placement_id in (first, second, third):
            write_placement_response(channel, response(placement_id))
        delete_placement_request(channel, first)
        delete_placement_response(channel, second)
        delete_placement(channel, third)
        placements = Placements.read(channel)
        assert (set(placements.requests), set(placements.responses)) == ({second}, {first})
        delete_placement(channel, "absent")
        channel.requests.write({"odd": "{"})
        assert set(Placements.read(channel).malformed) == {"odd"}
        assert set(delete_all_placements(channel)) == {first, second, "odd"}
        assert delete_all_placements(channel) == []
        assert not Placements.read(channel).requests

    def test_the_oldest_comes_first(self, channel: Channel) -> None:
        written = [write_placement_request(channel, "4", "node-2", created_at=NOW - timedelta(seconds=age)) for age in (1, 3, 2)]
        assert list(Placements.read(channel).requests) == [written[1], written[2], written[0]]

    def test_what_cannot_be_meant_is_not_written(self, channel: Channel) -> None:
        with pytest.raises(UnsupportedDestinationError):
            write_placement_request(channel, "driver", "node-2")
        assert not Placements.read(channel).requests

    def test_withdrawal(self, channel: Channel) -> None:
        placement_id = write_placement_request(channel, "4", "node-2")
        withdrawn = withdraw_placement(channel, placement_id)
        assert withdrawn is not None
        assert withdrawn.withdrawn
        assert read_placement_request(channel, placement_id) == withdrawn
        assert withdraw_placement(channel, "absent") is None

    def test_drains_do_not_see_placements(self, store: MetadataStore, channel: Channel) -> None:
        write_placement_request(channel, "4", "node-2")
        drains = Channel.over(store, MemoryStore())
        write_notification(drains, DrainNotification(drain_id="d", created_at=NOW))
        assert set(Drains.read(drains).notifications) == {"d"}
        assert Drains.read(drains).malformed == ()
        assert len(Placements.read(channel).requests) == 1


class TestCommand:
    """The seed's place-container tool, run as people run it."""

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return f"file:{tmp_path / 'store'}"

    def run(self, location: str, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "spark_drain_store", "--metadata-store", location, "placement", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def shown(self, location: str, *words: str) -> list[dict[str, Any]]:
        done = self.run(location, "show", *words)
        assert done.returncode == 0, done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)["placements"]
        return rows

    def test_write_show_delete(self, location: str) -> None:
        done = self.run(
            location, "write", "--deployment-id", "spark-1", "--processor-id", "4", "--request-expiry", "10", "--destination-host", "host-2"
        )
        assert (done.returncode, done.stderr) == (0, "")
        placement_id = done.stdout.strip()
        (row,) = self.shown(location)
        asked = {"deploymentId": "spark-1", "processorId": "4", "requestExpiry": 10, "destinationHost": "host-2"}
        assert row == row | asked | {"uuid": placement_id, "statusCode": "CREATED"}
        write_placement_response(open_channel(location, PLACEMENT), response(placement_id, PlacementStatus.BAD_REQUEST))
        (row,) = self.shown(location, placement_id)
        assert row["statusCode"] == "BAD_REQUEST"
        assert json.loads(self.run(location, "delete", placement_id).stdout) == {"removed": [placement_id]}
        assert self.shown(location) == []

    def test_withdraw(self, location: str) -> None:
        placement_id = self.run(location, "write", "--processor-id", "4", "--node-selector", "pool=fast").stdout.strip()
        assert self.run(location, "withdraw", placement_id).returncode == 0
        (row,) = self.shown(location)
        assert (row["withdrawn"], row["nodeSelector"]) == (True, {"pool": "fast"})

    @pytest.mark.parametrize(
        ("words", "named"),
        [
            (("write", "--processor-id", "4"), "--destination-host or --node-selector"),
            (("write", "--processor-id", "driver", "--destination-host", "n"), "'driver'"),
            (("write", "--processor-id", "4", "--destination-host", "n", "--request-expiry", "0"), "not 0"),
            (("write", "--processor-id", "4", "--node-selector", "pool"), "'pool' must be LABEL=VALUE"),
            (("write", "--processor-id", "4", "--node-selector", "a=b", "--node-selector", "a=c"), "twice"),
            (("show", "nobody"), "there is no placement 'nobody'"),
            (("withdraw", "nobody"), "there is no placement 'nobody'"),
            (("delete", "nobody"), "there is no placement 'nobody'"),
        ],
    )
    def test_bad_input_is_named(self, location: str, words: tuple[str, ...], named: str) -> None:
        done = self.run(location, *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error: ")
        assert named in done.stderr

    def test_nothing_there_is_said(self, location: str) -> None:
        assert "there are no placements" in self.run(location, "show").stderr


def test_a_location_that_is_malformed_is_named() -> None:
    with pytest.raises(StoreError, match="nowhere"):
        open_channel("nowhere", PLACEMENT)


def test_what_has_ended_is_not_withdrawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    location = f"file:{tmp_path / 'store'}"
    placement_id = write_placement_request(open_channel(location, PLACEMENT), "4", "ANY_OTHER")
    write_placement_response(open_channel(location, PLACEMENT), response(placement_id))
    assert main(["--metadata-store", location, "placement", "withdraw", placement_id]) == 0
    said = f"note: placement {placement_id} has ended (statusCode SUCCEEDED) and is not withdrawn any more"
    assert said in capsys.readouterr().err
