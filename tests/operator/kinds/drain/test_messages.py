"""What is left in the store when a drain ends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from spark_drain_operator.kinds.drain.messages import forget_notification
from spark_drain_store.channel import Channel
from spark_drain_store.memory import MemoryStore
from spark_drain_store.messages import DrainNotification
from spark_drain_store.protocol import Snapshot

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_the_end_prunes_old_reports_and_only_its_own_request() -> None:
    channel = Channel.in_memory()
    for drain_id in ("mine", "other"):
        channel.requests.write({drain_id: DrainNotification(drain_id=drain_id, created_at=NOW).to_json()})
    channel.reports.write({"mine": "{}", "other": "{}", "ancient": "{}"})
    forget_notification(channel, "mine")
    assert set(channel.requests.read().entries) == {"other"}
    assert set(channel.reports.read().entries) == {"mine", "other"}


def test_the_report_of_a_drain_that_begins_meanwhile_stays() -> None:
    """Another operator, or somebody with the command, begins it between the two reads."""
    requests, reports = MemoryStore(), MemoryStore()
    happens: list[Callable[[], None]] = []
    channel = Channel.over(_Interrupted(requests, happens), _Interrupted(reports, happens))

    def begin() -> None:
        plain = Channel.over(requests, reports)
        plain.requests.write({"new": DrainNotification(drain_id="new", created_at=NOW).to_json()})
        plain.reports.write({"new": "{}"})

    channel.requests.write({"mine": "{}"})
    channel.reports.write({"old": "{}"})
    happens.append(begin)
    forget_notification(channel, "mine")
    assert set(channel.reports.read().entries) == {"new"}


@dataclass
class _Interrupted:
    """A store after whose first read something happens."""

    store: MemoryStore
    happens: list[Callable[[], None]]

    def read(self) -> Snapshot:
        found = self.store.read()
        while self.happens:
            self.happens.pop()()
        return found

    def write(self, changes: Mapping[str, str | None], *, if_version: str | None = None) -> str:
        return self.store.write(changes, if_version=if_version)

    def watch(self, since: str, timeout: float) -> Snapshot | None:
        return self.store.watch(since, timeout)

    def close(self) -> None:
        self.store.close()
