"""Events of the operator's own objects: what `kubectl describe` shows."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Mapping
from typing import Any

from spark_drain_store.kube_client import ApiError, KubeClient, objects_path

from spark_drain_operator.clock import exactly_now, format_time, now

__all__ = ["COMPONENT", "EventRecorder"]

COMPONENT = "spark-drain-operator"
_MAX_MESSAGE = 1024  # bytes, of a core/v1 Event
_MOST_WAITING = 5000

_log = logging.getLogger(__name__)


class EventRecorder:
    """Writes Events one after the other, in a thread of its own: no drain waits for them. One that cannot be written is logged."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._waiting: queue.Queue[dict[str, Any] | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._write_all, name="events", daemon=True)
        self._start = threading.Lock()

    def close(self, timeout: float) -> None:
        """Write what waits, as long as that takes less than ``timeout`` seconds."""
        if self._thread.is_alive():
            self._enqueue(None)
            self._thread.join(timeout)

    def record(self, about: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        """Let one Event about an object be written.

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
            "message": message.encode(errors="replace")[:_MAX_MESSAGE].decode(errors="ignore"),
            "action": "Reconcile",
            "eventTime": exactly_now().isoformat().replace("+00:00", "Z"),
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": COMPONENT,
        }
        with self._start:
            if not self._thread.is_alive():
                self._thread.start()
        self._enqueue(body)

    def _enqueue(self, body: dict[str, Any] | None) -> None:
        try:
            self._waiting.put_nowait(body)
        except queue.Full:
            _log.warning("%d events wait to be written; one more is dropped: %s", _MOST_WAITING, body and body["reason"])

    def _write_all(self) -> None:
        while (body := self._waiting.get()) is not None:
            try:
                self._client.request("POST", objects_path("v1", body["metadata"]["namespace"], "events"), body=body)
            except ApiError as error:
                if error.status not in (404, 409):
                    self._lost(body, error)
            except Exception as error:  # an unknown defect must not end the thread that every pass hands its Events to
                self._lost(body, error)

    @staticmethod
    def _lost(body: dict[str, Any], error: Exception) -> None:
        about = body["involvedObject"]
        _log.warning("event %s of %s/%s could not be written: %s", body["reason"], about["namespace"], about["name"], error)
