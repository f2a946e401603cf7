"""Plays the driver agent: the real messages through the real store, without Spark."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from spark_drain_store import Channel, DrainNotification, DrainReport, DrainState, QueryReport
from spark_drain_store.channel import config_map_names
from spark_drain_store.configmap import ConfigMapStore
from spark_drain_store.drains import read_notifications
from spark_drain_store.kube_client import KubeClient
from spark_drain_store.messages import OperatorReport

from tests.support.waiting import eventually

QUERY = QueryReport(
    id="11111111-2222-3333-4444-555555555555",
    name="counts",
    state="Running",
    checkpoint_location="file:///checkpoints/counts",
    checkpoint_policy="Reseed",
    sink="KafkaSink",
    operators=(OperatorReport(name="stateStoreSave", disposition="flushed", rows_before=7),),
)


class ScriptedAgent:
    """The agent of one run at a time."""

    def __init__(self, client: KubeClient, namespace: str, run_id: str, pod_uid: str, application: str = "app") -> None:
        requests, reports = config_map_names(application)
        self.channel = Channel.over(ConfigMapStore(client, namespace, requests), ConfigMapStore(client, namespace, reports))
        self.run_id = run_id
        self.pod_uid = pod_uid
        self.runs: tuple[str, ...] = (run_id,)
        self.sequence = 0
        self.last: DrainReport | None = None

    def notifications(self) -> dict[str, DrainNotification]:
        return read_notifications(self.channel.requests.read())[0]

    def await_notification(self, *, seconds: float = 60.0) -> DrainNotification:
        def mine() -> DrainNotification | None:
            return next((item for item in self.notifications().values() if item.run_id in (None, self.run_id)), None)

        return eventually(mine, seconds=seconds, what=f"a notification for run {self.run_id}")

    def await_withdrawn(self) -> DrainNotification:
        return eventually(lambda: next((item for item in self.notifications().values() if item.withdrawn), None), what="it is withdrawn")

    def await_removed(self, drain_id: str) -> None:
        eventually(lambda: drain_id not in self.notifications(), what="that one is removed")

    def await_no_notification(self) -> None:
        eventually(lambda: not self.notifications(), what="the notification is removed")

    def report(self, drain_id: str, state: DrainState, **fields: Any) -> DrainReport:
        self.sequence += 1
        base = self.last or DrainReport(
            drain_id=drain_id, runs=self.runs, state=state, updated_at=datetime.now(UTC), queries=(QUERY,), executors_expected=2
        )
        report = replace(
            base,
            drain_id=drain_id,
            runs=self.runs,
            state=state,
            updated_at=fields.pop("updated_at", None) or datetime.now(UTC),
            sequence=self.sequence,
            driver_pod_uid=self.pod_uid,
            driver_pod_name="app-driver",
            drained_at=base.drained_at or (datetime.now(UTC) if state is DrainState.DRAINED else None),
            reason=fields.pop("reason", ""),
            message=fields.pop("message", ""),
            **fields,
        )
        self.channel.reports.write({drain_id: report.to_json()})
        self.last = report
        return report

    def restarted(self, run_id: str, pod_uid: str) -> None:
        """Become the agent of the application's next run, which has inherited the drain."""
        self.run_id, self.pod_uid = run_id, pod_uid
        self.runs = (*self.runs, run_id)

    def drain(self, drain_id: str, **fields: Any) -> None:
        """Report every step from the acknowledgement to the end."""
        for state in (
            DrainState.ACKNOWLEDGED,
            DrainState.STOPPING,
            DrainState.COMMITTING,
            DrainState.FLUSHING,
            DrainState.REPORTING,
        ):
            self.report(drain_id, state)
        self.drained(drain_id, **fields)

    def drained(self, drain_id: str, *, executors: str = "1-2", **fields: Any) -> None:
        offsets = {"KafkaV2[Subscribe[flights]]": '{"flights":{"0":4711}}'}
        done = replace(
            QUERY,
            state="Drained",
            last_batch_id=41,
            flush_batch_id=42,
            end_offsets=offsets,
            operators=(OperatorReport(name="stateStoreSave", disposition="flushed", rows_before=7, rows_after=0),),
        )
        self.report(drain_id, DrainState.DRAINED, queries=(done,), executors_drained=executors, timings={"flush": 1.25}, **fields)
