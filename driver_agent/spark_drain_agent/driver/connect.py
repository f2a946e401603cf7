"""Applications of Spark Connect: their queries run in the server, out of the agent's reach, so every drain is answered with that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from spark_drain_store import Channel, DrainNotification, DrainReport, DrainState, Snapshot, reasons
from spark_drain_store.drains import read_notifications, read_reports
from spark_drain_store.topics import DRAIN

from spark_drain_agent.clock import utc_now
from spark_drain_agent.drain.identity import Identity
from spark_drain_agent.driver.watch import Watch
from spark_drain_agent.milestones import LOG

__all__ = ["CLASSIC_ONLY", "ConnectRefusal", "answers"]

CLASSIC_ONLY = (
    "the session is one of Spark Connect, whose queries run in the server and not in this driver, so the drain agent can neither see nor "
    "drain them; give the application a classic session: spark.api.mode=classic, and neither remote() nor spark.remote nor SPARK_REMOTE"
)


def answers(
    identity: Identity, notifications: Mapping[str, DrainNotification], reports: Mapping[str, DrainReport]
) -> Iterable[DrainReport]:
    """Return the answers that are missing.

    Parameters
    ----------
    identity
        This run; one without a run id answers the notifications of all runs.
    notifications, reports
        By the drain's id.

    Notes
    -----
    A drain that an earlier run, of a classic session, has taken past the point of no return stalls: rejected it can no longer be.
    """
    for drain_id, notification in notifications.items():
        report = reports.get(drain_id)
        inherited = report is not None and bool(report.runs)
        if not inherited and identity.run_id and notification.run_id not in (None, identity.run_id):
            continue
        if report is not None and (report.state.finished or report.reason == reasons.UNSUPPORTED_SESSION):
            continue
        beyond = report is not None and report.state.forward_only
        before = report or DrainReport(drain_id=drain_id, runs=(), state=DrainState.ACKNOWLEDGED, updated_at=utc_now(), sequence=0)
        yield replace(
            before,
            runs=(*before.runs, identity.run_id) if identity.run_id else before.runs,
            state=DrainState.STALLED if beyond else DrainState.REJECTED,
            reason=reasons.UNSUPPORTED_SESSION,
            message=CLASSIC_ONLY,
            sequence=before.sequence + 1,
            updated_at=utc_now(),
            driver_pod_uid=identity.pod_uid,
            driver_pod_name=identity.pod_name,
            agent_version=identity.agent_version,
            spark_version=identity.spark_version,
        )


class ConnectRefusal:
    """Answers the drain notifications of an application whose session is one of Spark Connect.

    Parameters
    ----------
    channel
        The application's drain messages.
    identity
        Who this driver is.
    """

    def __init__(self, channel: Channel, identity: Identity) -> None:
        self._channel = channel
        self._identity = identity
        self._watch = Watch(channel, {DRAIN: self._answer})

    @property
    def run_id(self) -> str:
        """``spark.app.id`` of the server in this process, or of this driver; "" where neither is known."""
        return self._identity.run_id

    def begin(self) -> None:
        """Answer what is there, then what comes."""
        self._watch.begin()

    def close(self) -> None:
        """Answer no longer."""
        self._watch.close()

    def _answer(self, requests: Snapshot) -> None:
        notifications, _ = read_notifications(requests)
        if not notifications:
            return
        reports, _ = read_reports(self._channel.reports.read())
        for report in answers(self._identity, notifications, reports):
            LOG.warning("drain %s: %s: %s", report.drain_id, report.state.value, report.message)
            self._channel.reports.write({report.drain_id: report.to_json()})
