"""Objects that have ended: not watched, since thousands of them may be kept; all are looked through for what is left to do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from spark_drain_store.kube_client import ApiError, ApiUnavailableError

from spark_drain_operator.engine.queue import DelayedQueue
from spark_drain_operator.engine.workers import ObjectKey
from spark_drain_operator.handlers.register import is_finished, needs_a_pass
from spark_drain_operator.periodic import Periodic
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.own_objects import Resource

__all__ = ["Ended"]

_SECONDS, _AFTER_A_FAILURE = 600.0, 15.0

_log = logging.getLogger(__name__)


class Ended:
    """Looks through all objects when the operator starts, and every ten minutes.

    An operator that was killed may have left a finalizer, and has forgotten whose time to live runs.

    Parameters
    ----------
    cluster, resources, namespaces
        Where to look; the namespace "" means everywhere.
    queue
        Where keys go.
    """

    def __init__(
        self, cluster: Cluster, resources: Iterable[Resource], namespaces: Callable[[], Iterable[str]], queue: DelayedQueue[ObjectKey]
    ) -> None:
        self._cluster = cluster
        self._resources, self._namespaces = tuple(resources), namespaces
        self._queue = queue
        self.thread = Periodic("ended", self._look_and_wait)
        """Started and stopped with the operator."""

    def look(self) -> None:
        """Look through all objects once."""
        for resource in self._resources:
            for namespace in self._namespaces():
                for body in self._cluster.objects(resource).all(namespace):
                    shown_as_ended = (body.get("status") or {}).get("phase") in resource.ended
                    # A phase that was written by hand takes an unfinished object from the watch.
                    if (shown_as_ended or is_finished(body)) and needs_a_pass(None, body):
                        metadata = body["metadata"]
                        self._queue.add(ObjectKey(resource.kind, metadata["namespace"], metadata["name"]))

    def _look_and_wait(self) -> float:
        try:
            self.look()
        except (ApiError, ApiUnavailableError) as error:
            _log.warning("what has ended could not be looked through: %s; again in %g s", error, _AFTER_A_FAILURE)
            return _AFTER_A_FAILURE
        return _SECONDS
