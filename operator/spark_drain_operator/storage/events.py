"""Events of the operator's own objects: what `kubectl describe` shows."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from spark_drain_store.kube_client import ApiError, ApiUnavailableError, KubeClient, objects_path

from spark_drain_operator.clock import format_time, now

__all__ = ["COMPONENT", "EventRecorder"]

COMPONENT = "spark-drain-operator"
_MAX_MESSAGE = 1024  # of a core/v1 Event

_log = logging.getLogger(__name__)


class EventRecorder:
    """Writes an Event; one that cannot be written is logged and forgotten."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def record(self, about: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        """Write one Event about an object.

        Parameters
        ----------
        about
            The object, as the API server returned it.
        type_
            ``Normal`` or ``Warning``.
        reason, message
            One CamelCase word, one sentence.
        """
        metadata, stamp = about["metadata"], format_time(now())
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            # Events of one second are shown in the order of their names.
            "metadata": {"name": f"{metadata['name']}.{time.time_ns():016x}", "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "type": type_,
            "reason": reason,
            "message": message[:_MAX_MESSAGE],
            "action": "Reconcile",
            "eventTime": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": COMPONENT,
        }
        try:
            self._client.request("POST", objects_path("v1", metadata["namespace"], "events"), body=body)
        except (ApiError, ApiUnavailableError) as error:
            if not (isinstance(error, ApiError) and error.status in (404, 409)):
                _log.warning("event %s of %s/%s could not be written: %s", reason, metadata["namespace"], metadata["name"], error)
