"""Whether the operator can watch what it has to: definitions installed, rights granted."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import NamedTuple

from spark_drain_store.kube_client import ApiError, ApiUnavailableError, KubeClient, collection_path

from spark_drain_operator.periodic import Periodic
from spark_drain_operator.storage.own_objects import GROUP, VERSION, Resource
from spark_drain_operator.storage.versions import Versions

__all__ = ["Access", "NotServedError", "is_news"]

_REVIEW = "authorization.k8s.io/v1"
_GRANT = "grant its service account list and watch, as the chart does"
_APPLY = "apply the files of crds/"
_WAYS_OUT = {404: _APPLY, 400: f"the installed definition has no selectableFields: {_APPLY}, which need Kubernetes 1.31"}
_SECONDS, _SHARE = 15.0, 20.0
_FIRST_ATTEMPTS, _RETRY_SECONDS = 6, 5.0
_TELL_AGAIN_SECONDS = 3600.0

_log = logging.getLogger(__name__)


class _Collection(NamedTuple):
    group: str
    plural: str
    namespace: str
    path: str
    query: Mapping[str, str]


class NotServedError(Exception):
    """What the operator lacks, in a sentence."""


class Access:
    """Asks for one object of each kind that is watched, in a thread of its own: no probe waits for the API server.

    Parameters
    ----------
    client
        The API server.
    resources
        The operator's own kinds.
    namespaces
        Where it watches; empty means everywhere.
    versions
        Compared with what is read: kopf's watches do not see that a server was restored.
    """

    def __init__(
        self, client: KubeClient, resources: Sequence[Resource], namespaces: Sequence[str], versions: Versions | None = None
    ) -> None:
        self._client = client
        self._versions = versions or Versions()
        # With a name, so that no server looks through thousands that have ended for one that has not.
        own = [(f"{GROUP}/{VERSION}", resource.plural, {"fieldSelector": f"metadata.name=any,{resource.active}"}) for resource in resources]
        kinds = [*own, ("v1", "configmaps", {}), ("v1", "pods", {})]
        self._collections = {
            namespace: [
                _Collection(version.rpartition("/")[0], plural, namespace, collection_path(version, namespace, plural), query)
                for version, plural, query in kinds
            ]
            for namespace in (namespaces or [""])
        }
        self._told: frozenset[str] = frozenset()
        self._told_at = 0.0
        self.found = ""
        """Why nothing at all could be watched when it was looked at last, or ""."""
        self.watchable = tuple(self._collections)
        """Namespaces that could be watched when it was looked at last; "" means everywhere."""
        self.thread = Periodic("access", self._look, first=_SECONDS)
        """Started and stopped with the operator; the more there is to look at, the more rarely it looks."""

    def _look(self) -> float:
        began = time.monotonic()
        self.look()
        return max(_SECONDS, _SHARE * (time.monotonic() - began))

    def look(self) -> None:
        """Look at everything once; a namespace that cannot be watched, for example a deleted one, does not end the work in the others."""
        problems = self.problems()
        self.watchable = tuple(namespace for namespace in self._collections if namespace not in problems)
        self.found = "" if self.watchable else next(iter(problems.values()))
        if self.watchable and is_news(self._told, problems.keys(), time.monotonic() - self._told_at):
            for problem in problems.values():
                _log.warning("%s; the other namespaces are watched", problem)
            for namespace in self._told - problems.keys():
                _log.info("namespace %r can be watched again", namespace)
            self._told, self._told_at = frozenset(problems), time.monotonic()

    def problems(self) -> dict[str, str]:
        """Return what cannot be read, and the way out, by namespace; nothing where the API server does not answer now."""
        found = {namespace: next(filter(None, map(self._problem, collections)), "") for namespace, collections in self._collections.items()}
        return {namespace: problem for namespace, problem in found.items() if problem}

    def _problem(self, collection: _Collection) -> str:
        group, plural, namespace, path, query = collection
        where = f"namespace {namespace!r}" if namespace else "any namespace"
        try:
            self._versions.checked(plural, partial(self._client.request, "GET", path, query={**query, "limit": "1"}))
            asked = {"verb": "watch", "group": group, "resource": plural, **({"namespace": namespace} if namespace else {})}
            review = {"apiVersion": _REVIEW, "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": asked}}
            answer = self._client.request("POST", f"/apis/{_REVIEW}/selfsubjectaccessreviews", body=review)
            if not answer["status"]["allowed"]:
                return f"the operator may not watch {plural} in {where}: {_GRANT}"
        except ApiError as error:
            way_out = _WAYS_OUT.get(error.status, _GRANT)
            return f"the operator cannot watch {plural} in {where} ({error}): {way_out}"
        except ApiUnavailableError:
            return ""  # ending the operator would not bring the API server back
        return ""

    def await_first(self) -> None:
        """Wait half a minute for something to watch: definitions and rights are often applied together with the operator.

        Raises
        ------
        NotServedError
            There is nothing all the same.
        """
        for attempt in range(_FIRST_ATTEMPTS):
            self.look()
            if self.watchable:
                return
            _log.warning("%s", self.found)
            if attempt < _FIRST_ATTEMPTS - 1:
                time.sleep(_RETRY_SECONDS)
        raise NotServedError(self.found)


def is_news(told: Set[str], found: Set[str], seconds: float) -> bool:
    """Return whether it is to be told which namespaces cannot be watched: when they are others, and every hour."""
    return found != told or bool(found and seconds >= _TELL_AGAIN_SECONDS)
