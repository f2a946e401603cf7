"""Whether the operator can watch what it has to: definitions installed, rights granted."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from spark_drain_store.kube_client import ApiError, ApiUnavailableError, KubeClient, cluster_path, objects_path

from spark_drain_operator.periodic import Periodic
from spark_drain_operator.storage.own_objects import GROUP, VERSION, Resource

__all__ = ["Access", "NotServedError"]

_REVIEW = "authorization.k8s.io/v1"
_GRANT = "grant its service account list and watch, as the chart does"
_SECONDS, _SHARE = 15.0, 20.0
_FIRST_ATTEMPTS, _RETRY_SECONDS = 6, 5.0

_log = logging.getLogger(__name__)


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
    """

    def __init__(self, client: KubeClient, resources: Sequence[Resource], namespaces: Sequence[str]) -> None:
        self._client = client
        own = [(f"{GROUP}/{VERSION}", resource.plural) for resource in resources]
        kinds = [*own, ("v1", "configmaps"), ("v1", "pods")]
        self._collections = [
            (
                version.rpartition("/")[0],
                plural,
                namespace,
                objects_path(version, namespace, plural) if namespace else cluster_path(version, plural),
            )
            for version, plural in kinds
            for namespace in (namespaces or [""])
        ]
        self.found = ""
        """What the thread has found missing last."""
        self.thread = Periodic("access", self._look, first=_SECONDS)
        """Started and stopped with the operator; the more there is to look at, the more rarely it looks."""

    def _look(self) -> float:
        began = time.monotonic()
        self.found = self.missing()
        return max(_SECONDS, _SHARE * (time.monotonic() - began))

    def missing(self) -> str:
        """Return what cannot be read, and the way out; "" where all can, or where the API server does not answer now."""
        return next(filter(None, map(self._problem, self._collections)), "")

    def _problem(self, collection: tuple[str, str, str, str]) -> str:
        group, plural, namespace, path = collection
        where = f"namespace {namespace!r}" if namespace else "any namespace"
        try:
            self._client.request("GET", path, query={"limit": "1"})
            asked = {"verb": "watch", "group": group, "resource": plural, **({"namespace": namespace} if namespace else {})}
            review = {"apiVersion": _REVIEW, "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": asked}}
            answer = self._client.request("POST", f"/apis/{_REVIEW}/selfsubjectaccessreviews", body=review)
            if not answer["status"]["allowed"]:
                return f"the operator may not watch {plural} in {where}: {_GRANT}"
        except ApiError as error:
            way_out = "apply the files of crds/" if error.status == 404 else _GRANT
            return f"the operator cannot watch {plural} in {where} ({error}): {way_out}"
        except ApiUnavailableError:
            return ""  # ending the operator would not bring the API server back
        return ""

    def await_first(self) -> None:
        """Wait half a minute for everything to be there: definitions and rights are often applied together with the operator.

        Raises
        ------
        NotServedError
            Something is missing all the same.
        """
        for attempt in range(_FIRST_ATTEMPTS):
            missing = self.missing()
            if not missing:
                return
            _log.warning("%s", missing)
            if attempt < _FIRST_ATTEMPTS - 1:
                time.sleep(_RETRY_SECONDS)
        raise NotServedError(missing)
