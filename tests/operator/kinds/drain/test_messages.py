"""What is left in the store when a drain ends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from spark_drain_operator.kinds.drain.messages import forget_notification, interrupted, outdated
from spark_drain_store.channel import Channel
from spark_drain_store.memory import MemoryStore
from spark_drain_store.messages import DrainNotification, DrainReport, DrainState
from spark_drain_store.protocol import MAX_TOTAL_BYTES, Snapshot

from tests.operator.kinds.drain.samples import at, report

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_the_end_prunes_old_reports_and_only_its_own_request() -> None:
    channel = Channel.in_memory()
    for drain_id in ("mine", "other"):
        channel.requests.write({drain_id: DrainNotification(drain_id=drain_id, created_at=NOW).to_json()})
    channel.reports.write({"mine": "{}", "other": "{}", "ancient": report(DrainState.FAILED, drain_id="ancient").to_json()})
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
    channel.reports.write({"old": report(DrainState.FAILED, drain_id="old").to_json()})
    happens.append(begin)
    forget_notification(channel, "mine")
    assert set(channel.reports.read().entries) == {"new"}


def one(drain_id: str, state: DrainState, seconds: float = 0, **fields: str) -> DrainReport:
    return report(state, drain_id=drain_id, updated_at=at(seconds), **fields)


FAILED, FLUSHING = one("failed", DrainState.FAILED), one("flushing", DrainState.FLUSHING, 10)
STALLED, DRAINED = one("stalled", DrainState.STALLED, 20), one("drained", DrainState.DRAINED, 30)
LARGE = one("large", DrainState.FLUSHING, message="x" * (MAX_TOTAL_BYTES // 2))
ACTIVE = one("active", DrainState.STOPPING, 40)


@pytest.mark.parametrize(
    ("reports", "malformed", "wanted", "gone"),
    [
        ([FAILED], [], set(), {"failed"}),
        ([FAILED, FLUSHING], [], set(), {"failed"}),
        ([FLUSHING, STALLED], [], set(), {"flushing"}),
        ([FLUSHING, ACTIVE], [], {"active"}, set()),
        ([FLUSHING], ["odd"], set(), {"odd"}),
        ([FAILED], ["odd"], set(), {"failed"}),
        ([LARGE], [], set(), {"large"}),
        ([FLUSHING, DRAINED], [], {"drained"}, {"flushing"}),
        ([FLUSHING, DRAINED], [], set(), {"flushing", "drained"}),
        ([DRAINED], ["odd"], {"drained"}, {"odd"}),
    ],
)
def test_a_report_of_an_interrupted_drain_stays(reports: list[DrainReport], malformed: list[str], wanted: set[str], gone: set[str]) -> None:
    entries = {each.drain_id: each.to_json() for each in reports} | dict.fromkeys(malformed, "{}")
    assert outdated(Snapshot("1", entries), wanted) == gone


def test_a_drain_that_a_later_one_has_completed_is_not_interrupted() -> None:
    assert interrupted({"flushing": FLUSHING, "drained": DRAINED}, ()) is None
    later = one("flushing", DrainState.FLUSHING, 50)
    assert interrupted({"flushing": later, "drained": DRAINED}, ()) == ("flushing", "Flushing")


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
