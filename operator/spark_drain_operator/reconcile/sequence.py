"""One pass over one drain: observe, go through the steps, write the status once, tell what has changed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from spark_drain_store import StoreError
from spark_drain_store.kube_client import ApiError

from spark_drain_operator.applications import adapters, find_adapter
from spark_drain_operator.models import clock
from spark_drain_operator.models.reasons import ConditionType, Phase, Reason, message_of
from spark_drain_operator.models.spec import DrainSpec, InvalidSpecError
from spark_drain_operator.models.status import DrainStatus, Ending
from spark_drain_operator.reconcile import (
    acknowledge,
    approve,
    executors,
    find_run,
    finish,
    flush,
    force_stop,
    keep_result,
    progress,
    request,
    scale_down,
    stop_sources,
    verdict,
    withdraw,
)
from spark_drain_operator.reconcile.limits import limits_of, next_limit
from spark_drain_operator.reconcile.observation import DrainPass, Messages
from spark_drain_operator.reconcile.outcome import Ended, Outcome, Waiting, ended
from spark_drain_operator.reconcile.phases import mark_active, phase_of
from spark_drain_operator.reconcile.story import story
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.drains import FINALIZER, GROUP

__all__ = ["FORCE_DELETE", "Reconciler"]

FORCE_DELETE = f"{GROUP}/force-delete"
"""Annotation: with "true" a deleted PipelineDrain goes at once, whatever the agent does."""

_log = logging.getLogger(__name__)

_STEPS: tuple[Callable[[DrainPass], Outcome], ...] = (
    verdict.run,
    withdraw.run,
    force_stop.run,
    find_run.run,
    request.run,
    acknowledge.run,
    approve.run,
    stop_sources.run,
    flush.run,
    executors.run,
    keep_result.run,
    scale_down.run,
)


class Reconciler:
    """Brings drains forward; keeps nothing in memory between two passes.

    Parameters
    ----------
    cluster
        The API server.
    settings
        Of the installation.
    """

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._adapters = adapters(cluster)

    def reconcile(self, namespace: str, name: str) -> float | None:
        """Do one pass; return after how many seconds the next one is due, or None.

        Raises
        ------
        ApiError, ApiUnavailableError, StoreError
            Nothing was decided; the same pass may be tried again.
        """
        body = self._cluster.drains.get(namespace, name)
        if body is None:
            return None
        status = DrainStatus.read(body, clock.now())
        try:
            spec = DrainSpec.parse(body["spec"])
        except InvalidSpecError as error:
            return self._write(body, status, Ending(Phase.REJECTED, Reason.INVALID_SPEC, str(error)))
        if status.finished:
            return self._after_the_end(body, spec, status)
        if body["metadata"].get("deletionTimestamp") and self._must_go_now(body):
            self._let_go(body, spec)
            return None
        if status.outcome is not None:
            self._forget(body, spec)
            return self._write(body, status, status.outcome)
        rejected = self._inadmissible(spec)
        if rejected is not None:
            return self._write(body, status, rejected.ending)
        return self._advance(body, spec, status)

    def _inadmissible(self, spec: DrainSpec) -> Ended | None:
        ref = spec.application
        if find_adapter(self._adapters, ref) is None:
            supported = ", ".join(f"{adapter.api_version}/{adapter.kind}" for adapter in self._adapters)
            message = message_of(Reason.UNSUPPORTED_APPLICATION, apiVersion=ref.api_version, kind=ref.kind, supported=supported)
            return ended(Phase.REJECTED, Reason.UNSUPPORTED_APPLICATION, message)
        if spec.after_drain == "Delete" and not self._settings.allow_delete:
            return ended(Phase.REJECTED, Reason.DELETE_NOT_ALLOWED, message_of(Reason.DELETE_NOT_ALLOWED))
        return None

    def _advance(self, body: dict[str, Any], spec: DrainSpec, status: DrainStatus) -> float | None:
        if not body["metadata"].get("deletionTimestamp") and FINALIZER not in (body["metadata"].get("finalizers") or []):
            held = self._cluster.drains.set_finalizer(body, present=True)
            if held is None:
                return None
            body = held
        drain = self._observe(body, spec, status)
        status.plan = spec.plan()
        status.set(ConditionType.STALLED, "False", Reason.NOT_STALLED)
        if drain.report is not None:
            progress.fill(status, drain.report)
        complete = status.conditions.is_true(ConditionType.EXECUTORS_DRAINED)
        if complete and drain.application is not None and drain.application.uid != status.application_uid:
            drain.application = None  # the next one of that name is not ours to stop
        outcome: Outcome = Waiting(0.0, "")
        # With the application its ConfigMaps go: there is no report any more, and none is needed.
        for step in (scale_down.run,) if complete and drain.application is None else _STEPS:
            outcome = step(drain)
            if isinstance(outcome, Waiting | Ended):
                break
        else:
            outcome = ended(Phase.DRAINED, Phase.DRAINED, _drained(drain))
        if drain.application is not None:
            status.application_state = drain.application.state
        status.phase = phase_of(spec, status, drain.report)
        if isinstance(outcome, Ended):
            if drain.notification is None and not status.notification_uuid:
                return self._write(drain.body, status, outcome.ending)
            # Decided first, carried out in the next pass: a restart in between must not write the notification again.
            status.outcome = outcome.ending
            mark_active(status, status.phase, outcome.ending.message, None)
            self._write(drain.body, status, None)
            return 0.0
        mark_active(status, status.phase, outcome.message, drain.messages.malformed.get(drain.uuid))
        limit = next_limit(limits_of(spec, status, find_run.current_driver(drain.application), drain.report), drain.now)
        self._write(drain.body, status, None)
        return outcome.seconds if limit is None or status.withdrawal is not None else min(outcome.seconds, limit)

    def _observe(self, body: dict[str, Any], spec: DrainSpec, status: DrainStatus) -> DrainPass:
        adapter = find_adapter(self._adapters, spec.application)
        assert adapter is not None
        namespace, ref = body["metadata"]["namespace"], spec.application
        # Messages first: ConfigMaps that went with their application must not look as if somebody had removed the notification.
        messages = Messages.read(self._cluster.channels.open(namespace, ref.kind, ref.name))
        return DrainPass(
            cluster=self._cluster,
            settings=self._settings,
            body=body,
            spec=spec,
            status=status,
            adapter=adapter,
            application=adapter.observe(namespace, ref.name),
            messages=messages,
        )

    def _write(self, body: dict[str, Any], status: DrainStatus, ending: Ending | None) -> float | None:
        before = DrainStatus.read(body, status.now)
        if ending is not None:
            finish.conclude(status, ending)
        wanted = status.as_object()
        if wanted != body.get("status"):
            written = self._cluster.drains.write_status(body, wanted)
            if written is None:
                return None
            for event in story(before, status):
                self._cluster.events.record(written, *event)
                _log.info("%s/%s: %s: %s", body["metadata"]["namespace"], body["metadata"]["name"], event.reason, event.message)
            body = written
        return self._after_the_end(body, None, status) if ending is not None else None

    def _after_the_end(self, body: dict[str, Any], spec: DrainSpec | None, status: DrainStatus) -> float | None:
        if FINALIZER in (body["metadata"].get("finalizers") or []):
            released = self._cluster.drains.set_finalizer(body, present=False)
            if released is None:
                return None
            body = released
        try:
            left = finish.seconds_to_live(spec or DrainSpec.parse(body["spec"]), status.completion_time, clock.now())
        except InvalidSpecError:
            return None
        if left == 0.0:
            self._cluster.drains.delete(body)
            return None
        return left

    def _must_go_now(self, body: dict[str, Any]) -> bool:
        metadata = body["metadata"]
        if (metadata.get("annotations") or {}).get(FORCE_DELETE) == "true":
            return True
        return self._cluster.namespaces.is_terminating(metadata["namespace"])

    def _let_go(self, body: dict[str, Any], spec: DrainSpec) -> None:
        try:
            self._forget(body, spec)
        except (StoreError, ApiError) as error:
            # A terminating namespace refuses writes, and whoever forces a deletion wants the object gone whatever else fails.
            _log.warning("%s: notification not removed: %s", body["metadata"]["name"], error)
        if FINALIZER in (body["metadata"].get("finalizers") or []):
            self._cluster.drains.set_finalizer(body, present=False)

    def _forget(self, body: dict[str, Any], spec: DrainSpec) -> None:
        metadata, ref = body["metadata"], spec.application
        finish.forget_notification(self._cluster.channels.open(metadata["namespace"], ref.kind, ref.name), metadata["uid"])


def _drained(drain: DrainPass) -> str:
    numbers = drain.status.progress
    done = {"Suspend": "the application is suspended", "Delete": "the application is deleted", "Keep": "the application was left running"}
    return (
        f"{numbers.get('queries', '0/0')} queries and {numbers.get('executors', '0/0')} executors drained; {done[drain.spec.after_drain]}; "
        f"end offsets are in ConfigMap {drain.status.result_name}"
    )
