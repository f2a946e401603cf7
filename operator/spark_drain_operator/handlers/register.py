"""kopf's handlers: watch streams in, keys out. No kopf finalizer, timer, daemon, annotation or patch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import kopf

from spark_drain_operator.engine.conditions import FINISHED
from spark_drain_operator.engine.queue import DelayedQueue
from spark_drain_operator.engine.workers import ObjectKey, Workers
from spark_drain_operator.handlers.watched import Watched
from spark_drain_operator.storage.own_objects import GROUP, VERSION, Resource
from spark_drain_operator.storage.watch_cache import WatchCache

__all__ = ["is_finished", "needs_a_pass", "register", "select"]

_TTL = "ttlSecondsAfterFinished"
_STOP_SECONDS = 8.0
_WATCHES_SECONDS = 10.0  # kopf ends each watch of each namespace; both together are less than the grace period of the pod
_NOT_STARTED = frozenset({"", "Pending", "AwaitingApproval"})


def needs_a_pass(event_type: str | None, body: Mapping[str, Any]) -> bool:
    """Whether an event of one of the operator's own objects is news; the operator's own status writes are not.

    Nor is one that has ended and that nothing is left to do for: thousands of them may be kept.
    """
    metadata, status = body["metadata"], body.get("status") or {}
    if is_finished(body) and not metadata.get("finalizers") and body["spec"].get(_TTL) is None:
        return bool(status.get("observedGeneration") != metadata.get("generation"))
    if event_type in (None, "ADDED") or metadata.get("deletionTimestamp"):
        return True
    return bool(status.get("observedGeneration") != metadata.get("generation"))


def is_finished(body: Mapping[str, Any]) -> bool:
    """Whether an object has ended."""
    conditions = (body.get("status") or {}).get("conditions") or []
    return any(item["type"] == FINISHED and item["status"] == "True" for item in conditions)


def select(settings: kopf.OperatorSettings, resources: Iterable[Resource]) -> None:
    """Have the API server leave out what is no news: there may be thousands of drains that have ended."""
    for resource in resources:
        settings.watching.field_selectors[GROUP, VERSION, resource.plural] = resource.active  # see `handlers.ended`


def register(
    registry: kopf.OperatorRegistry,
    resources: Iterable[Resource],
    watched: Watched,
    cache: WatchCache,
    queue: DelayedQueue[ObjectKey],
    *,
    workers: Workers,
    unserved: Callable[[], str],
    may_have_left: Callable[[ObjectKey], bool],
) -> None:
    """Register all handlers.

    Parameters
    ----------
    registry
        Of kopf.
    resources
        The operator's own kinds.
    watched
        Which objects wait for what.
    cache
        Where passes read the objects of these kinds.
    queue
        Where keys go.
    workers
        Started and stopped with the operator.
    unserved
        Says what the operator may not read or watch, or "".
    may_have_left
        Whether something may have been written for an object that has not been removed yet.
    """

    @kopf.on.startup(registry=registry)
    def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        select(settings, resources)
        # Neither namespaces nor definitions change what is watched, and a namespaced installation may not list them.
        settings.scanning.disabled = True
        settings.posting.enabled = False
        settings.process.ultimate_exiting_timeout = _STOP_SECONDS + _WATCHES_SECONDS
        workers.start()

    @kopf.on.cleanup(registry=registry)
    def stop(**_: Any) -> None:
        workers.stop(_STOP_SECONDS)

    @kopf.on.probe(registry=registry, id="stuckWorkers")
    def probe(**_: Any) -> list[str]:
        stuck = workers.stuck()
        if stuck:
            raise kopf.PermanentError(f"workers are stuck: {', '.join(stuck)}")
        return stuck

    @kopf.on.probe(registry=registry, id="unserved")
    def served(**_: Any) -> str:
        found = unserved()
        if found:
            raise kopf.PermanentError(found)
        return found

    for resource in resources:
        _register_own(registry, resource, watched, cache, queue, may_have_left=may_have_left)


def _register_own(
    registry: kopf.OperatorRegistry,
    resource: Resource,
    watched: Watched,
    cache: WatchCache,
    queue: DelayedQueue[ObjectKey],
    *,
    may_have_left: Callable[[ObjectKey], bool],
) -> None:
    @kopf.on.event(GROUP, VERSION, resource.plural, registry=registry)
    def own_seen(type: str, event: Mapping[str, Any], body: kopf.Body, namespace: str | None, name: str, **_: Any) -> None:
        key = ObjectKey(resource.kind, namespace or "", name)
        if type == "DELETED":
            cache.remove(resource.plural, event["object"])
        else:
            cache.put(resource.plural, event["object"])
        if type == "DELETED":
            watched.forget(key)
            if may_have_left(key):
                queue.add(key)
            return
        if is_finished(body):
            watched.forget(key)
        else:
            reference = body["spec"]["applicationRef"]
            watched.track(key, str(reference["kind"]), str(reference["name"]), stops=resource.stops)
            if (body.get("status") or {}).get("phase", "") not in _NOT_STARTED:
                watched.hasten(key)
        if needs_a_pass(type, body):
            queue.add(key)
