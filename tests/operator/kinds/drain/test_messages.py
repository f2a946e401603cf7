"""What is left in the store when a drain ends."""

from datetime import UTC, datetime

from spark_drain_operator.kinds.drain.messages import forget_notification
from spark_drain_store.channel import Channel
from spark_drain_store.messages import DrainNotification

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_the_end_prunes_old_reports_and_only_its_own_request() -> None:
    channel = Channel.in_memory()
    for drain_id in ("mine", "other"):
        channel.requests.write({drain_id: DrainNotification(drain_id=drain_id, created_at=NOW).to_json()})
    channel.reports.write({"mine": "{}", "other": "{}", "ancient": "{}"})
    forget_notification(channel, "mine")
    assert set(channel.requests.read().entries) == {"other"}
    assert set(channel.reports.read().entries) == {"mine", "other"}
