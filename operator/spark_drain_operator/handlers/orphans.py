"""What was written for drains that are gone is removed when an operator starts, and every hour."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from spark_drain_store.kube_client import ApiUnavailableError

from spark_drain_operator.kinds.drain.orphans import remove_orphans
from spark_drain_operator.periodic import Periodic
from spark_drain_operator.storage import Cluster

__all__ = ["orphans"]

_SECONDS, _AFTER_A_REFUSAL, _AFTER_A_FAILURE = 3600.0, 600.0, 15.0

_log = logging.getLogger(__name__)


def orphans(cluster: Cluster, namespaces: Callable[[], Iterable[str]]) -> Periodic:
    """Return the thread that looks for them, in the namespaces that are watched at that time."""

    def look() -> float:
        try:
            return _SECONDS if remove_orphans(cluster, namespaces()) else _AFTER_A_REFUSAL
        except ApiUnavailableError as error:
            _log.warning("requests could not be looked through: %s; again in %g s", error, _AFTER_A_FAILURE)
            return _AFTER_A_FAILURE

    return Periodic("orphans", look)
