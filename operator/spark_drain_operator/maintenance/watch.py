"""The watch of nodes: what is cordoned, or about to be removed, is cleared by the operator itself."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from spark_drain_store.kube_client import ApiError, ApiUnavailableError

from spark_drain_operator.clock import format_time, later, now
from spark_drain_operator.maintenance.budgets import BudgetKeeper
from spark_drain_operator.maintenance.clearing import Clearing, clearing_of, marks_of
from spark_drain_operator.maintenance.evacuation import Evacuation, Told, application_of
from spark_drain_operator.periodic import Periodic
from spark_drain_operator.settings import NodeSettings
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.informer import Informer
from spark_drain_operator.storage.watch_cache import Collection

__all__ = ["NodeWatch"]

_POLL_SECONDS, _IDLE_SECONDS, _AFTER_A_FAILURE = 2.0, 30.0, 5.0
_NOT_WATCHED = "no node is cleared, and evictions wait as before; grant its service account list and watch of nodes, as the chart does"
_SHARE = 5.0
"""The more there is to look at, the more rarely it is done."""

_log = logging.getLogger(__name__)


class NodeWatch:
    """Clears nodes that are marked, as `python -m spark_drain_operator evacuate` does, and tells so in Events of the SparkApplications.

    Parameters
    ----------
    cluster
        The API server.
    settings
        Which nodes are cleared, and how long they have.
    namespaces
        Returns whose applications are moved; the namespace "" means everywhere.
    """

    def __init__(self, cluster: Cluster, settings: NodeSettings, namespaces: Callable[[], Iterable[str]]) -> None:
        self._cluster, self._settings = cluster, settings
        self._evacuation = Evacuation(cluster, settings.at_once, self._tell, namespaces=namespaces, urgent_seconds=settings.urgent_seconds)
        self._budgets = BudgetKeeper(cluster, wanted=settings.budgets, namespaces=namespaces, tell=self._tell)
        self._nodes: dict[str, Clearing] = {}
        self._seen: dict[tuple[str, str], datetime] = {}
        self._begun: dict[str, datetime] | None = None
        self._marks: dict[str, Mapping[str, object]] = {}
        self._problem = ""
        nodes = Collection("v1", "nodes", holds=lambda body: bool(marks_of(body, settings)), otherwise=_NOT_WATCHED)
        self.informer = Informer(cluster.client, cluster.cache, nodes, "", self._changed)
        self.thread = Periodic("nodes", self._look_and_wait)
        """Both are started and stopped with the operator."""

    def application_seen(self, body: Mapping[str, Any]) -> None:
        """Take note of an application that is new, changed or gone."""
        if self._budgets.seen(body):
            self.thread.hasten()

    def _changed(self, body: Mapping[str, Any]) -> None:
        """Look at once where the marks of a node are others: its status changes all the time."""
        if marks_of(body, self._settings) != self._marks.get(body["metadata"]["uid"], {}):
            self.thread.hasten()

    def _look_and_wait(self) -> float:
        began = time.monotonic()
        try:
            waits = self._look()
        except (ApiError, ApiUnavailableError) as error:
            if str(error) != self._problem:
                _log.warning("nodes could not be looked at: %s; again in %g s", error, _AFTER_A_FAILURE)
            self._problem = str(error)
            return _AFTER_A_FAILURE
        except Exception:
            _log.exception("nodes: defect in the operator")
            return _IDLE_SECONDS
        self._problem = ""
        return max(_POLL_SECONDS if waits else _IDLE_SECONDS, _SHARE * (time.monotonic() - began))

    def _look(self) -> bool:
        """Do what is to be done next; return whether something is waited for."""
        bodies = self._cluster.cache.together("nodes", "", "")
        if bodies is None:  # the watch does not run yet, or not any more: what is marked now is not known
            return True
        wanted = (clearing_of(body, self._settings, self._first_seen(body), now()) for body in bodies)
        nodes = [found for found in wanted if found is not None]
        self._marks = {body["metadata"]["uid"]: marks_of(body, self._settings) for body in bodies}
        self._seen = {(uid, mark): seen for (uid, mark), seen in self._seen.items() if mark in self._marks.get(uid, ())}
        self._begun = {}
        self._nodes = {**{uid: node for uid, node in self._nodes.items() if self._evacuation.busy}, **{node.uid: node for node in nodes}}
        look = self._evacuation.look(nodes) if nodes or self._evacuation.busy else None
        self._budgets.keep((*look.decision.stuck, *look.decision.came_back) if look is not None else ())
        return look is not None and (not look.decision.over or self._evacuation.busy)

    def _first_seen(self, body: Mapping[str, Any]) -> Callable[[str], datetime]:
        """Return since when marks of a node are known that do not say it: also to an operator that was here before this one."""
        uid = str(body["metadata"]["uid"])

        def first_seen(mark: str) -> datetime:
            if self._begun is None:
                noted = [(attempt.since, attempt.node_uid) for attempt in self._evacuation.attempts() if attempt.since is not None]
                self._begun = {node: since for since, node in sorted(noted)}
            before = self._begun.get(uid)
            seconds = self._settings.taints.get(mark, self._settings.cordon_seconds)
            # One that is to come is of another clock, or whoever may create drains has made it up.
            known = before if before is not None and before <= now() < later(before, seconds) else now()
            return self._seen.setdefault((uid, mark), known)

        return first_seen

    def _tell(self, told: Told) -> None:
        node = self._nodes.get(told.node_uid)
        why = ""
        if node is not None:
            tense = "is" if self._marks.get(node.uid) else "was"
            why = f"node {node.node} {tense} to be clear by {format_time(node.until)} ({node.why}): "
        message = f"{why}{told.message}"
        _log.info("%s/%s: %s", told.namespace, told.application, message)
        body = application_of(self._cluster, told.namespace, told.application)
        if body is not None:
            self._cluster.events.record(body, "Warning" if told.warning else "Normal", told.reason, message)
