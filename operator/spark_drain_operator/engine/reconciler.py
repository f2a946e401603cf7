"""One pass over one object: load, hold, go through the steps, write the status once, tell what has changed."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Generic

from spark_drain_store import StoreError
from spark_drain_store.kube_client import ApiError

from spark_drain_operator import clock
from spark_drain_operator.engine.activity import mark_active
from spark_drain_operator.engine.conditions import INVALID_SPEC, NOT_STALLED, RECONCILE_FAILED, RESTORED, STALLED
from spark_drain_operator.engine.ending import conclude, seconds_to_live
from spark_drain_operator.engine.kind import InvalidSpecError, Kind, PassT, SpecT, StatusT
from spark_drain_operator.engine.outcome import Ended, Outcome, Waiting
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.own_objects import GROUP, UID

__all__ = ["FORCE_DELETE", "Reconciler"]

FORCE_DELETE = f"{GROUP}/force-delete"
"""Annotation: with "true" a deleted object goes at once, whatever still waits for it."""

_REMOVE_AGAIN_SECONDS = 60.0
_REMOVE_WITHIN_SECONDS = 300
"""How long a deleted object that has ended is held for what was written for it."""

_log = logging.getLogger(__name__)


class Reconciler(Generic[SpecT, StatusT, PassT]):
    """Brings the objects of one kind forward; keeps nothing in memory between two passes.

    Parameters
    ----------
    kind
        What the objects mean.
    cluster
        The API server.
    """

    def __init__(self, kind: Kind[SpecT, StatusT, PassT], cluster: Cluster) -> None:
        self._kind = kind
        self._cluster = cluster
        self._objects = cluster.objects(kind.resource)

    def reconcile(self, namespace: str, name: str) -> float | None:
        """Do one pass; return after how many seconds the next one is due, or None.

        Raises
        ------
        ApiError, ApiUnavailableError, StoreError
            Nothing was decided; the same pass may be tried again.
        """
        body = self._objects.get(namespace, name)
        if body is None:
            return None
        if body["metadata"].get("deletionTimestamp") and self._objects.holds_finalizer(body) and self._must_go_now(body):
            self._let_go(body)
            return None
        status = self._kind.read_status(body, clock.now())
        if status.finished:
            # A later change of the spec changes nothing, but kstatus waits until it is observed.
            seen = body["status"].get("observedGeneration") == body["metadata"]["generation"]
            return self._after_the_end(body, status, removed=False) if seen else self._write(body, status, None)
        try:
            spec = self._kind.parse(body["spec"])
        except InvalidSpecError as error:
            return self._unreadable(body, status, str(error))
        if status.outcome is not None:
            self._kind.forget(body)
            return self._write(body, status, status.outcome, removed=True)
        rejected = None if self._kind.was_begun(status) else self._restored(body) or self._kind.inadmissible(spec)
        if rejected is not None:
            return self._write(body, status, rejected)
        return self._advance(body, spec, status)

    def _unreadable(self, body: dict[str, Any], status: StatusT, problem: str) -> float | None:
        """Reject what was not begun; what was waits for a definition and an operator that fit each other."""
        if not self._kind.was_begun(status) or body["metadata"].get("deletionTimestamp"):
            return self._write(body, status, Ending(self._kind.rejected, INVALID_SPEC, problem))
        status.set(STALLED, "True", INVALID_SPEC, problem)
        mark_active(status, problem)
        return self._write(body, status, None)

    def _restored(self, body: dict[str, Any]) -> Ending | None:
        first = (body["metadata"].get("annotations") or {}).get(UID)
        if first is None or first == body["metadata"]["uid"]:
            return None
        message = (
            f"this is a copy of another {body['kind']}, or one restored from a backup: its annotation {UID} is {first!r}. What that one "
            "did is not done again; to do it again, create it without the annotation"
        )
        return Ending(self._kind.rejected, RESTORED, message)

    def tell_failure(self, namespace: str, name: str, problem: str) -> None:
        """Say in the status why passes fail, and end the object where it has waited long enough: no failure holds it for ever.

        Raises
        ------
        ApiError, ApiUnavailableError
            The status cannot be read or written either.
        """
        body = self._objects.get(namespace, name)
        if body is None:
            return
        status = self._kind.read_status(body, clock.now())
        if status.finished:
            return
        try:
            spec = self._kind.parse(body["spec"])
        except InvalidSpecError:
            return
        message = f"{problem}; it is tried again"
        status.set(STALLED, "True", RECONCILE_FAILED, message)
        ending = status.outcome or self._kind.overdue(body, spec, status)
        if ending is None:
            mark_active(status, message)
            self._write(body, status, None)
            return
        self._write(body, status, replace(ending, message=f"{ending.message}; {problem}"))

    def _advance(self, body: dict[str, Any], spec: SpecT, status: StatusT) -> float | None:
        if not body["metadata"].get("deletionTimestamp") and not self._objects.holds_finalizer(body):
            held = self._objects.set_finalizer(body, present=True)
            if held is None:
                return None
            body = held
        stalled_before = status.conditions.get(STALLED)
        current = self._kind.observe(body, spec, status)
        outcome: Outcome = Waiting(0.0, "")
        for step in self._kind.steps(current):
            outcome = step(current)
            if isinstance(outcome, Waiting | Ended):
                break
        if isinstance(outcome, Ended):
            ending = outcome.ending
            if not self._kind.begun(current):
                return self._write(body, status, ending)
            # Decided first, carried out in the next pass: a restart in between must not begin again.
            status.outcome = ending
            self._kind.mark(current, ending.message, ends=True)
            status.set(STALLED, "False", NOT_STALLED)
            mark_active(status, ending.message)
            self._write(body, status, None)
            return 0.0
        assert isinstance(outcome, Waiting), "the last step of a kind ends the object"
        self._kind.mark(current, outcome.message, ends=False)
        if status.conditions.get(STALLED) is stalled_before:  # no step has said that it is
            status.set(STALLED, "False", NOT_STALLED)
        mark_active(status, outcome.message)
        limit = self._kind.seconds_to_limit(current)
        self._write(body, status, None)
        return outcome.seconds if limit is None else min(outcome.seconds, limit)

    def _write(self, body: dict[str, Any], status: StatusT, ending: Ending | None, *, removed: bool = False) -> float | None:
        before = self._kind.read_status(body, status.now)
        if ending is not None:
            self._kind.conclude(status, ending)
            conclude(status, ending)
        wanted = status.as_object()
        if wanted != body.get("status"):
            written = self._objects.write_status(body, wanted)
            if written is None:
                return None
            for event in self._kind.events(before, status):
                self._cluster.events.record(written, *event)
                _log.info("%s/%s: %s: %s", body["metadata"]["namespace"], body["metadata"]["name"], event.reason, event.message)
            body = written
        return self._after_the_end(body, status, removed=removed) if status.finished else None

    def _after_the_end(self, body: dict[str, Any], status: StatusT, *, removed: bool) -> float | None:
        if self._objects.holds_finalizer(body):
            # What ended in another way than by an outcome that was decided first may still have what an earlier pass has written.
            if not removed and not self._forgotten(body) and not self._may_go(body, status):
                return _REMOVE_AGAIN_SECONDS
            released = self._objects.set_finalizer(body, present=False)
            if released is None:
                return None
            body = released
        try:
            left = seconds_to_live(self._kind.parse(body["spec"]).ttl, status.completion_time, clock.now())
        except InvalidSpecError:
            return None
        if left == 0.0:
            self._objects.delete(body)
            return None
        return left

    @staticmethod
    def _may_go(body: dict[str, Any], status: StatusT) -> bool:
        """Return whether an object that has ended may go although something is left of it."""
        ended = status.completion_time
        over = ended is None or clock.now() >= clock.later(ended, _REMOVE_WITHIN_SECONDS)
        return bool(body["metadata"].get("deletionTimestamp")) and over

    def _must_go_now(self, body: dict[str, Any]) -> bool:
        metadata = body["metadata"]
        if (metadata.get("annotations") or {}).get(FORCE_DELETE) == "true":
            return True
        return self._cluster.namespaces.is_terminating(metadata["namespace"])

    def _let_go(self, body: dict[str, Any]) -> None:
        """Remove what was written for the object, where that is possible at once, and the finalizer."""
        self._forgotten(body)
        self._objects.set_finalizer(body, present=False)

    def _forgotten(self, body: dict[str, Any]) -> bool:
        """Remove what was written for the object; return whether that was possible."""
        try:
            self._kind.forget(body)
        except (StoreError, ApiError) as error:
            _log.warning("%s: what was written for it could not be removed: %s", body["metadata"]["name"], error)
            return False
        return True
