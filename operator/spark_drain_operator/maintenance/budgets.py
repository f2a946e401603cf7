"""PodDisruptionBudgets that have evictions wait until pods are moved."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from spark_drain_store.kube_client import ApiError

from spark_drain_operator.applications.kubeflow import KubeflowAdapter
from spark_drain_operator.maintenance.evacuation import Told, application_of, opted_in
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.nodes import PodOnNode, Role
from spark_drain_operator.storage.own_objects import GROUP
from spark_drain_operator.storage.pods import APP_LABEL

__all__ = ["BUDGET_LABEL", "BudgetKeeper", "budget_of", "selects"]

BUDGET_LABEL = f"{GROUP}/evictions-wait"
"""Label of the operator's own budgets; the value is the application's name."""
_AGAIN_SECONDS = 30.0
_Application = tuple[str, str]


def budget_of(application: Mapping[str, Any], stuck: Iterable[PodOnNode]) -> dict[str, Any] | None:
    """Return the budget of an application, None where every pod may be evicted.

    Parameters
    ----------
    application
        The SparkApplication.
    stuck
        Its pods that are not moved any more: these may be evicted, and where one is the driver, so may all.
    """
    pods = list(stuck)
    if any(pod.role is Role.DRIVER for pod in pods):
        return None
    metadata = application["metadata"]
    chosen: list[dict[str, Any]] = [{"key": "spark-role", "operator": "In", "values": [str(Role.DRIVER), str(Role.EXECUTOR)]}]
    executors = sorted({pod.executor_id for pod in pods})
    if executors:
        chosen.append({"key": "spark-exec-id", "operator": "NotIn", "values": executors})
    owner = {"apiVersion": KubeflowAdapter.api_version, "kind": KubeflowAdapter.kind, "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "namespace": metadata["namespace"],
            "name": f"{metadata['name']}-evictions-wait",
            "labels": {"app.kubernetes.io/managed-by": "spark-drain", BUDGET_LABEL: metadata["name"]},
            "ownerReferences": [owner],
        },
        "spec": {
            "maxUnavailable": 0,
            "selector": {"matchLabels": {APP_LABEL: metadata["name"]}, "matchExpressions": chosen},
        },
    }


def selects(budget: Mapping[str, Any], application: Mapping[str, Any], pods: Iterable[Mapping[str, str]] = ()) -> bool:
    """Whether a budget holds for pods of an application: a pod with two cannot be evicted at all.

    Parameters
    ----------
    budget
        The PodDisruptionBudget.
    application
        The SparkApplication, which tells some labels of pods that are not there yet.
    pods
        Labels of pods that are there: kubeflow's operator, Spark and webhooks add some.
    """
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    spec, name = application.get("spec") or {}, application["metadata"]["name"]
    told = [
        {**((spec.get(str(role)) or {}).get("labels") or {}), APP_LABEL: name, "spark-role": str(role)}
        for role in (Role.DRIVER, Role.EXECUTOR)
    ]
    return any(_matches(selector, labels) for labels in (*told, *pods))


def _matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for term in selector.get("matchExpressions") or []:
        there, values = term["key"] in labels, term.get("values") or []
        fits = {
            "In": there and labels.get(term["key"]) in values,
            "NotIn": labels.get(term["key"]) not in values,
            "Exists": there,
            "DoesNotExist": not there,
        }
        if not fits.get(term["operator"], False):
            return False
    return True


class BudgetKeeper:
    """Makes, opens and removes the budgets.

    Parameters
    ----------
    cluster
        The API server.
    wanted
        Whether there are to be any; else those that are left are removed.
    namespaces
        Returns where to look; the namespace "" means everywhere.
    tell
        Takes why an application has not the budget that it should have.
    """

    def __init__(self, cluster: Cluster, *, wanted: bool, namespaces: Callable[[], Iterable[str]], tell: Callable[[Told], None]) -> None:
        self._cluster, self._namespaces, self._tell = cluster, namespaces, tell
        self._wanted = wanted
        self._lock = threading.Lock()
        self._opted: set[_Application] = set()
        self._told: set[tuple[_Application, str]] = set()
        self._kept: tuple[frozenset[_Application], frozenset[PodOnNode]] | None = None
        self._due = 0.0

    def seen(self, body: Mapping[str, Any]) -> bool:
        """Take note of an application; return whether that is news."""
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        wanted = self._wanted and opted_in(body)
        with self._lock:
            if wanted == (key in self._opted):
                return False
            (self._opted.add if wanted else self._opted.discard)(key)
        return True

    def keep(self, stuck: Iterable[PodOnNode]) -> None:
        """Have each application that has opted in have its budget, open for the pods that are stuck."""
        with self._lock:
            state = (frozenset(self._opted), frozenset(stuck))
        if state == self._kept and time.monotonic() < self._due:
            return
        self._kept, refused = None, False
        budgets = self._cluster.budgets.all(self._namespaces())
        own = {_owner(budget): budget for budget in budgets if _owner(budget)[1]}
        for application in state[0] | own.keys():
            others = [budget for budget in budgets if not _owner(budget)[1] and budget["metadata"]["namespace"] == application[0]]
            mine = [pod for pod in state[1] if (pod.namespace, pod.application) == application]
            try:
                self._keep_one(application, own.get(application), others, mine)
            except ApiError as error:  # a namespace that refuses does not hold up the others
                refused = True
                self._say(application, f"its PodDisruptionBudget could not be written: {error}")
        # Those that nobody wants any more are looked for until they are gone, and never again.
        self._due = time.monotonic() + _AGAIN_SECONDS if self._wanted or refused else math.inf
        self._kept = None if refused else state

    def _keep_one(
        self, key: _Application, own: Mapping[str, Any] | None, others: Sequence[Mapping[str, Any]], stuck: Sequence[PodOnNode]
    ) -> None:
        body = application_of(self._cluster, *key)
        if body is None:  # the budget goes with it
            with self._lock:
                self._opted.discard(key)
            self._told = {told for told in self._told if told[0] != key}
            return
        budget = budget_of(body, stuck) if self._wanted and opted_in(body) else None
        rival = self._rival(key, body, others) if budget is not None else ""
        if budget is None or rival:
            if own is not None:
                self._cluster.budgets.delete(own)
            if rival:
                self._say(
                    key, f"PodDisruptionBudget {rival} holds for its pods: no other one is made, since Kubernetes allows one for each pod"
                )
        elif own is None:
            self._cluster.budgets.create(budget)
        elif own["spec"].get("selector") != budget["spec"]["selector"]:
            self._cluster.budgets.select(own, budget["spec"]["selector"])

    def _rival(self, key: _Application, body: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> str:
        """Return the name of somebody else's budget that holds for its pods, or ""."""
        pods = self._cluster.pods.labels(*key) if others else []
        return next((str(other["metadata"]["name"]) for other in others if selects(other, body, pods)), "")

    def _say(self, key: _Application, message: str) -> None:
        if (key, message) not in self._told:
            self._told.add((key, message))
            self._tell(Told(*key, "BudgetProblem", message, warning=True))


def _owner(budget: Mapping[str, Any]) -> _Application:
    """Return the application of one of the operator's own budgets, without a name for those of others."""
    metadata = budget["metadata"]
    return str(metadata["namespace"]), str((metadata.get("labels") or {}).get(BUDGET_LABEL, ""))
