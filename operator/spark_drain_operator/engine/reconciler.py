"""One pass over one object: load, hold, go through the steps, write the status once, tell what has changed."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic

from spark_drain_store import StoreError
from spark_drain_store.kube_client import ApiError

from spark_drain_operator import clock
from spark_drain_operator.engine.activity import mark_active
from spark_drain_operator.engine.conditions import INVALID_SPEC, NOT_STALLED, RECONCILE_FAILED, RESTORED, STALLED, Condition
from spark_drain_operator.engine.ending import conclude, seconds_to_live
from spark_drain_operator.engine.kind import InvalidSpecError, Kind, PassT, SpecT, StatusT
from spark_drain_operator.engine.outcome import Ended, Noted, Outcome, StaleReadsError, Waiting
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
    """Brings the objects of one kind forward.

    Nothing that is kept in memory between two passes decides anything of an object that is there. Of those that are being carried out it is
    kept that something may have been written for them: the API server may answer that it has stored the finalizer, and delete the object
    all the same, where both requests come in the same moment; so may a person who removes the finalizer.

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
        self._failed: set[tuple[str, str]] = set()
        self._written: dict[str, float] = {}
        self._held: dict[tuple[str, str], dict[str, Any]] = {}

    def may_have_left(self, namespace: str, name: str) -> bool:
        """Whether something may have been written for an object that has not been removed yet."""
        return (namespace, name) in self._held

    def reconcile(self, namespace: str, name: str) -> float | None:
        """Do one pass; return after how many seconds the next one is due, or None.

        Raises
        ------
        ApiError, ApiUnavailableError, StoreError
            Nothing was decided; the same pass may be tried again.
        """
        asks = not self._kind.reads_watches or (namespace, name) in self._failed
        self._failed.add((namespace, name))
        try:
            with self._cluster.cache.bypassed() if asks else self._cluster.cache.reading():
                after = self._look(namespace, name)
        except StaleReadsError:
            with self._cluster.cache.bypassed():
                after = self._look(namespace, name)
        self._failed.discard((namespace, name))
        return after

    def _look(self, namespace: str, name: str) -> float | None:
        body = self._objects.get(namespace, name)
        self._remove_of_gone(namespace, name, None if body is None else body["metadata"]["uid"])
        if body is None:
            return None
        if self._objects.holds_finalizer(body):
            self._hold(body)
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
            self._remove(body)
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
        with self._cluster.cache.bypassed():
            self._tell_failure(namespace, name, problem)

    def _tell_failure(self, namespace: str, name: str, problem: str) -> None:
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
        stalled_before = status.conditions.get(STALLED)
        current = self._kind.observe(body, spec, status)
        if not body["metadata"].get("deletionTimestamp") and not self._objects.holds_finalizer(body):
            # After everything was read: it shows as well that nobody has changed the object meanwhile.
            held = self._objects.set_finalizer(body, present=True)
            if held is None:
                return None
            body = held
            self._hold(body)
            self._written[str(body["metadata"]["uid"])] = time.monotonic()
            self._kind.stored(current, body)
        outcome = self._go_through(current)
        if isinstance(outcome, Noted):
            self._mark(current, status, outcome.message, stalled_before)
            stored = self._store(body, status)
            if stored is None:
                return None
            if stored is not body:
                self._kind.stored(current, stored)
            body, stalled_before = stored, status.conditions.get(STALLED)
            outcome = self._go_through(current)
        if isinstance(outcome, Ended):
            ending = outcome.ending
            if self._cluster.cache.answered and not self._kind.settled(current, ending):
                raise StaleReadsError
            if not self._kind.begun(current):
                return self._write(body, status, ending)
            if self._kind.settled(current, ending) and self._forgotten(body):
                return self._write(body, status, ending, removed=True)
            # Decided first, carried out in the next pass: a restart in between must not begin again, nor what cannot be removed undo it.
            status.outcome = ending
            self._kind.mark(current, ending.message, ends=True)
            status.set(STALLED, "False", NOT_STALLED)
            mark_active(status, ending.message)
            self._write(body, status, None)
            return 0.0
        self._mark(current, status, outcome.message, stalled_before)
        if isinstance(outcome, Noted):
            self._write(body, status, None)
            return 0.0
        limit = self._kind.seconds_to_limit(current)
        patience = outcome.unhurried + self._written.get(str(body["metadata"]["uid"]), -math.inf) - time.monotonic()
        if patience > 0:
            return min(outcome.seconds, patience)
        self._write(body, status, None)
        return outcome.seconds if limit is None else min(outcome.seconds, limit)

    def _go_through(self, current: PassT) -> Waiting | Noted | Ended:
        outcome: Outcome = Waiting(0.0, "")
        for step in self._kind.steps(current):
            outcome = step(current)
            if isinstance(outcome, Waiting | Noted | Ended):
                return outcome
        raise AssertionError("the last step of a kind ends the object")

    def _mark(self, current: PassT, status: StatusT, message: str, stalled_before: Condition | None) -> None:
        self._kind.mark(current, message, ends=False)
        if status.conditions.get(STALLED) is stalled_before:  # no step has said that it is
            status.set(STALLED, "False", NOT_STALLED)
        mark_active(status, message)

    def _write(self, body: dict[str, Any], status: StatusT, ending: Ending | None, *, removed: bool = False) -> float | None:
        if ending is not None:
            self._kind.conclude(status, ending)
            conclude(status, ending)
        stored = self._store(body, status)
        if stored is None:
            return None
        if not status.finished:
            return None
        self._written.pop(str(body["metadata"]["uid"]), None)
        return self._after_the_end(stored, status, removed=removed)

    def _store(self, body: dict[str, Any], status: StatusT) -> dict[str, Any] | None:
        """Write the status where it differs, and tell its Events; return the object as it is then, None where it is gone.

        Raises
        ------
        ApiError, StoreError
            Also where it is gone, and what was written for it could not be removed: that is tried again.
        """
        before, wanted = self._kind.read_status(body, status.now), status.as_object()
        if wanted == body.get("status"):
            return body
        written = self._objects.write_status(body, wanted)
        if written is None:
            self._remove_of_gone(body["metadata"]["namespace"], body["metadata"]["name"], None)
            return None
        self._written[str(body["metadata"]["uid"])] = time.monotonic()
        for event in self._kind.events(before, status):
            self._cluster.events.record(written, *event)
            _log.info("%s/%s: %s: %s", body["metadata"]["namespace"], body["metadata"]["name"], event.reason, event.message)
        return written

    def _after_the_end(self, body: dict[str, Any], status: StatusT, *, removed: bool) -> float | None:
        if self._objects.holds_finalizer(body):
            # What ended in another way than by an outcome that was decided first may still have what an earlier pass has written.
            if not removed and not self._forgotten(body) and not self._may_go(body, status):
                return _REMOVE_AGAIN_SECONDS
            released = self._release(body)
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
        self._release(body)

    def _forgotten(self, body: dict[str, Any]) -> bool:
        """Remove what was written for the object; return whether that was possible."""
        try:
            self._remove(body)
        except (StoreError, ApiError) as error:
            _log.warning("%s: what was written for it could not be removed: %s", body["metadata"]["name"], error)
            return False
        return True

    def _release(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """Remove the finalizer; return the object as it is then, None where it is gone."""
        released = self._objects.set_finalizer(body, present=False)
        self._held.pop(_key(body), None)
        return released

    def _hold(self, body: dict[str, Any]) -> None:
        names = {name: body["metadata"][name] for name in ("namespace", "name", "uid")}
        self._held[_key(body)] = {"metadata": names, "spec": body["spec"]}

    def _remove(self, body: dict[str, Any]) -> None:
        """Remove what was written for the object."""
        self._kind.forget(body)
        self._held.pop(_key(body), None)

    def _remove_of_gone(self, namespace: str, name: str, there: str | None) -> None:
        """Remove what was written for the object of that name, where another uid is there now, or none."""
        held = self._held.get((namespace, name))
        if held is not None and held["metadata"]["uid"] != there:
            self._remove(held)
            self._written.pop(str(held["metadata"]["uid"]), None)
            _log.warning("%s/%s: it is gone before its end; what was written for it was removed", namespace, name)


def _key(body: Mapping[str, Any]) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]
