"""The placements of this run: one after the other, oldest first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_store import Channel, EntryTooLargeError, Snapshot, StoreError
from spark_drain_store.placement_messages import Destination, PlacementRequest, PlacementResponse, PlacementStatus
from spark_drain_store.placements import Placements, delete_placement_response, read_placement_requests, write_placement_response

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.clock import utc_now
from spark_drain_agent.milestones import LOG
from spark_drain_agent.placement.decide import Seen, refusal, void
from spark_drain_agent.placement.move import Caller, Move
from spark_drain_agent.placement.overdue import Overdue, is_due
from spark_drain_agent.placement.pod_template import conflict
from spark_drain_agent.placement.volume_claims import claims_exhausted
from spark_drain_agent.spark_internals.errors import JavaError, in_words
from spark_drain_agent.spark_internals.executor_pods import ExecutorPods
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["PlacementHandler"]

_RETRY_SECONDS = 2.0
_LOOK_SECONDS = 0.2
_LONGEST_NAME = 253
"""Of a node in Kubernetes."""
_LONGEST_MESSAGE = 1000


class PlacementHandler:
    """Carries out placement requests in a thread of its own, which there is only while there are any.

    Parameters
    ----------
    internals
        Access to Spark.
    channel
        The application's placements.
    run_id
        ``spark.app.id`` of this run.
    drain_id
        Returns the drain that is carried out, or "": a drain wins.
    queries
        Returns the queries that run.
    """

    def __init__(
        self,
        internals: SparkInternals,
        channel: Channel,
        run_id: str,
        drain_id: Callable[[], str],
        queries: Callable[[], Iterable[StreamingQuery]],
    ) -> None:
        self._internals = internals
        self._channel = channel
        self._run_id = run_id
        self._drain_id = drain_id
        self._queries = queries
        self._lock = threading.Lock()
        self._responses = threading.Lock()
        """Held from the look at a response to its write: the latest word stays."""
        self._requests: dict[str, PlacementRequest] = {}
        self._malformed: dict[str, str] = {}
        self._answered: set[str] = set()
        self._working = False

    def consider(self, requests: Snapshot) -> None:
        """Take note of the present requests, and begin to work on them; where that is under way, say that new ones have to wait."""
        readable, malformed = read_placement_requests(requests)
        with self._lock:
            new = readable.keys() - self._requests.keys()
            self._requests, self._malformed = readable, malformed
            self._answered &= readable.keys() | malformed.keys()
            if not self._unanswered() or self._internals.stopped or (self._working and not new):
                return
            work = self._accept_beside if self._working else self._work
            threading.Thread(target=work, name="spark-drain-placement", daemon=True).start()
            self._working = True  # not where the system had no more threads: a later look begins anew

    def _unanswered(self) -> list[str]:
        return [key for key in (*self._malformed, *self._requests) if key not in self._answered]

    def _work(self) -> None:
        with as_agent():
            pods = ExecutorPods(self._internals)
            overdue = Overdue(pods, self._respond)
            while (key := self._next()) is not None:
                try:
                    self._answer(key, pods, overdue)
                except StoreError as error:
                    LOG.warning("placement %s waits for the metadata store: %s", key, error)
                    time.sleep(_RETRY_SECONDS)
                    continue
                except Exception as error:
                    LOG.exception("placement %s: unexpected error", key)
                    with suppress(Exception):  # the thread is there for the requests after it, too
                        self._fail(key, f"unexpected {type(error).__name__}: {in_words(error)}")
                self._answered.add(key)

    def _next(self) -> str | None:
        """Return the request that comes next, or None: the thread ends then."""
        with self._lock:
            left = [] if self._internals.stopped else self._unanswered()
            self._working = bool(left)
            return left[0] if left else None

    def _answer(self, key: str, pods: ExecutorPods, overdue: Overdue) -> None:
        if key in overdue:
            self._await_end(key, pods, overdue)
            return
        placements = Placements.read(self._channel)
        response = placements.responses.get(key)
        if response is not None and response.status.finished:
            return
        request = self._requests.get(key)
        if request is None:
            if key in self._malformed:
                self._respond(_answer_to(key, PlacementStatus.BAD_REQUEST, self._malformed[key]))
            return
        self._accept()
        if response is not None and response.status is PlacementStatus.IN_PROGRESS:
            self._respond(_interrupted(response))
            return
        why = self._refusal(request, pods)
        if why:
            self._respond(_about(request, PlacementStatus.BAD_REQUEST, why))
            return
        caller = Caller(self._respond, lambda: self._unwanted(key), lambda: self._look_at_due(pods, overdue, but=key), self._queries)
        answered = not is_due(request) and Move(pods, request, pods.pods()[request.executor_id], caller).run()
        if not answered:
            overdue.end([request])
            self._await_end(key, pods, overdue)

    def _await_end(self, key: str, pods: ExecutorPods, overdue: Overdue) -> None:
        while key in overdue:
            self._look_at_due(pods, overdue)
            time.sleep(_LOOK_SECONDS)

    def _look_at_due(self, pods: ExecutorPods, overdue: Overdue, but: str = "") -> None:
        """End the executors whose time is over, also of placements that wait for another one."""
        try:
            self._answered |= overdue.look()
            others = [request for key, request in self._requests.items() if key not in self._answered and key != but and key not in overdue]
            overdue.end([request for request in others if is_due(request) and not self._refusal(request, pods)])
        except JavaError as error:
            LOG.warning("executors whose time is over are looked at again: %s", in_words(error))
        except Exception:
            LOG.exception("executors whose time is over are looked at again: unexpected error")

    def _fail(self, key: str, why: str) -> None:
        """Answer all the same: whoever asked waits for it."""
        request = self._requests.get(key)
        if request is not None:
            self._respond(_about(request, PlacementStatus.FAILED, why))

    def _refusal(self, request: PlacementRequest, pods: ExecutorPods) -> str:
        if why := void(request, self._run_id):
            return why
        unsupported = pods.unsupported()
        if unsupported:
            return refusal(request, Seen(run_id=self._run_id, unsupported=unsupported))
        node = request.destination_host if request.destination_host not in tuple(Destination) else ""
        objection = (pods.unusable(node) if node else "") or conflict(request, pods.template(), pods.node_selector())
        if not objection and request.destination_host != Destination.FORCE_RESTART_LAST_SEEN and request.decommission_at is None:
            objection = claims_exhausted(pods.confs(), executors=len(pods.active()), most=pods.most_with_claims)
        seen = Seen(
            run_id=self._run_id,
            drain_id=self._drain_id(),
            registered=frozenset(pods.registered()),
            pods=pods.pods(),
            objection=objection,
        )
        return refusal(request, seen)

    def _unwanted(self, key: str) -> str:
        request = self._requests.get(key)
        if request is None:
            return "its request was removed"
        if request.withdrawn:
            return "it was withdrawn"
        if drain_id := self._drain_id():
            return f"drain {drain_id} has begun"
        return "the SparkContext was stopped" if self._internals.stopped else ""

    def _accept_beside(self) -> None:
        with as_agent():
            try:
                self._accept()
            except StoreError as error:  # they are accepted when the next one begins
                LOG.warning("new placements wait for the metadata store: %s", error)

    def _accept(self) -> None:
        with self._responses:
            placements = Placements.read(self._channel)
            for key, request in placements.requests.items():
                if key not in placements.responses and key not in self._answered:
                    self._write(_about(request, PlacementStatus.ACCEPTED, "it waits for its turn"))

    def _respond(self, response: PlacementResponse) -> None:
        """Write an answer, a final one until it is written; not where its request was removed: nobody would remove the answer then."""
        while True:
            try:
                with self._responses:
                    if response.placement_id in self._requests or response.placement_id in self._malformed:
                        self._write(response)
                    else:
                        delete_placement_response(self._channel, response.placement_id)
            except StoreError as error:
                if not response.status.finished or self._internals.stopped:  # the next one says more, or nobody is left to say it
                    LOG.warning("placement %s: the response could not be written: %s", response.placement_id, error)
                    return
                time.sleep(_RETRY_SECONDS)
            else:
                return

    def _write(self, response: PlacementResponse) -> None:
        complete = replace(_bounded(response), run_id=self._run_id, updated_at=utc_now())
        try:
            write_placement_response(self._channel, complete)
        except EntryTooLargeError:
            self._remove_unasked()
            write_placement_response(self._channel, complete)
        LOG.info("placement %s: %s: %s", complete.placement_id, complete.status, complete.message)

    def _remove_unasked(self) -> None:
        """Make room: nobody asks for the responses to requests that were removed."""
        asked = self._channel.requests.read().entries
        unasked = [key for key in self._channel.reports.read().entries if key not in asked]
        if unasked:
            LOG.warning("responses to placement requests that were removed make room for others: %s", ", ".join(unasked))
            self._channel.reports.write(dict.fromkeys(unasked))


def _bounded(response: PlacementResponse) -> PlacementResponse:
    """Return a response of a bounded size, whatever the request is like: hundreds fit into the store."""
    return replace(
        response,
        executor_id=response.executor_id[:_LONGEST_NAME],
        destination_host=response.destination_host[:_LONGEST_NAME],
        message=response.message[:_LONGEST_MESSAGE],
    )


def _interrupted(response: PlacementResponse) -> PlacementResponse:
    """Return what became of a placement that an earlier run was carrying out."""
    if response.replaced:
        told = f"{response.message}; run {response.run_id} has ended before that"
        return replace(response, status=PlacementStatus.SUCCEEDED, message=told)
    told = f"run {response.run_id} was interrupted while it replaced the executor"
    return replace(response, status=PlacementStatus.FAILED, message=told)


def _about(request: PlacementRequest, status: PlacementStatus, message: str) -> PlacementResponse:
    answer = _answer_to(request.placement_id, status, message)
    return replace(answer, executor_id=request.executor_id, destination_host=request.destination_host)


def _answer_to(key: str, status: PlacementStatus, message: str) -> PlacementResponse:
    return PlacementResponse(placement_id=key, status=status, updated_at=utc_now(), message=message)
