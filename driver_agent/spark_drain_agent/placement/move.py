"""One placement: the new executor is there before the old one goes (Samza's RESERVE, STOP; facts of Spark in `executor_pods`)."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_store.placement_messages import Destination, PlacementRequest, PlacementResponse, PlacementStatus

from spark_drain_agent.clock import monotonic, utc_now
from spark_drain_agent.milestones import LOG, reached
from spark_drain_agent.placement.blocks import blocks_note
from spark_drain_agent.placement.first_batch import Cost, FirstBatch
from spark_drain_agent.placement.overdue import is_due
from spark_drain_agent.placement.pod_template import bound_template
from spark_drain_agent.placement.stop import Stop
from spark_drain_agent.placement.target import Target
from spark_drain_agent.placement.volume_claims import claims_note
from spark_drain_agent.spark_internals.errors import JavaError, in_words
from spark_drain_agent.spark_internals.executor_pods import PLACEMENT_ANNOTATION, ExecutorPod, ExecutorPods

__all__ = ["Caller", "Move"]

_LOOK_SECONDS = 0.2
_ADMISSION_SECONDS = 2.0
_QUIET_SECONDS, _QUIET_LOOKS, _MOST_LOOKS = 1.0, 3, 60
"""Spark looks for missing executors once in spark.kubernetes.allocation.batch.delay, by default 1 s."""
_IDLE_SECONDS, _BATCH_SECONDS = 1.0, 60.0
"""How long no query has to do anything, so that its next batch is not waited for; and how long it is waited for at most."""


class _GivenUpError(Exception):
    """The new executor is not there, and will not be waited for; the text says why."""


class _DueError(Exception):
    """The time is over at which the old executor is ended in any case."""


class _RemovedError(Exception):
    """Dynamic allocation wanted fewer executors for a moment, and Spark has removed the pod that waited: it has to make another one."""


@dataclass(frozen=True)
class Caller:
    """Whoever has a move carried out.

    Parameters
    ----------
    respond
        Called with each new response, which it completes and stores.
    unwanted
        Returns why the placement is not wanted any more, or "".
    beside
        Called again and again, for what else there is to do.
    queries
        Returns the queries that run.
    """

    respond: Callable[[PlacementResponse], None]
    unwanted: Callable[[], str]
    beside: Callable[[], None]
    queries: Callable[[], Iterable[StreamingQuery]]


class Move:
    """The replacement of one executor.

    Parameters
    ----------
    pods
        The application's executors.
    request
        What is asked for; it was not refused.
    source
        The executor's pod.
    caller
        Is told, and asked.
    """

    def __init__(self, pods: ExecutorPods, request: PlacementRequest, source: ExecutorPod, caller: Caller) -> None:
        self._pods = pods
        self._request = request
        self._source = source
        self._caller = caller
        self._begun = monotonic()
        self._before = frozenset(pods.pods())
        self._forced = request.destination_host == Destination.FORCE_RESTART_LAST_SEEN
        self._target = Target(pods, source.executor_id, forced=self._forced)
        self._started = False
        self._last: ExecutorPod | None = None
        self._response = PlacementResponse(
            placement_id=request.placement_id,
            status=PlacementStatus.IN_PROGRESS,
            updated_at=request.created_at,
            executor_id=request.executor_id,
            destination_host=request.destination_host,
            source_node=source.node,
        )

    def run(self) -> bool:
        """Replace the executor, or leave everything as it was; the response says which.

        Returns
        -------
        bool
            False where there is no answer yet: the executor's time was over before a new one was there, and it is to be ended.
        """
        confs = self._pods.confs()
        claims = "".join(f"; {note}" for note in [claims_note(confs)] if note)
        first_batch = FirstBatch(self._caller.queries)
        blocks = blocks_note(confs, forced=self._forced)
        self._say(f"executor {self._source.executor_id} on {self._source.node} is being replaced; {blocks}{claims}")
        try:
            new = self._restart() if self._forced else self._reserve()
        except _DueError:
            return False
        except _GivenUpError as given_up:
            self._end(PlacementStatus.FAILED, str(given_up))
        else:
            self._end(*self._replaced_by(new, first_batch, claims))
        return True

    def _replaced_by(self, new: ExecutorPod, first_batch: FirstBatch, claims: str) -> tuple[PlacementStatus, str]:
        old = self._source
        if not self._forced and not self._stop(new):
            return PlacementStatus.FAILED, f"executor {new.executor_id} runs on {new.node}, but executor {old.executor_id} does not end"
        seconds = monotonic() - self._begun
        replaced = (
            f"executor {new.executor_id} on {new.node} has replaced executor {old.executor_id} on {old.node} after {seconds:.1f} s{claims}"
        )
        if self._request.decommission_at is None:  # else there is no time to lose for those that wait
            self._say(f"{replaced}; a batch after that is waited for", replaced=True)
            replaced += self._note(self._await_batch(first_batch))
        return PlacementStatus.SUCCEEDED, replaced

    # -- the new executor ------------------------------------------------------------------------------------------------------------

    def _reserve(self) -> ExecutorPod:
        """Have one executor more, at the destination; where that fails, the wanted number and the template are as before."""
        self._await_admission()
        try:
            return self._await_new(lambda: None)
        except _DueError:
            self._target.release()
            for pod in self._own():
                if not pod.node:  # Spark makes another one, which may run anywhere; one that starts already is that other one
                    self._remove(pod)
            raise
        except BaseException:
            self._target.release()
            self._remove_surplus(self._before)
            self._target.take_back()
            raise

    def _restart(self) -> ExecutorPod:
        """End the executor first, and have Spark replace it on its node; where that fails, anywhere."""
        try:
            return self._await_new(lambda: self._pods.kill(self._source.executor_id))
        except _GivenUpError as given_up:
            for pod in self._own():
                self._remove(pod)  # Spark makes another one, which may run anywhere
            needed = " if it needs as many" if self._target.dynamic else ""
            raise _GivenUpError(
                f"{given_up}; executor {self._source.executor_id} was ended, and Spark replaces it on any node{needed}"
            ) from None
        finally:
            self._target.release()
            self._target.take_back()  # where it could not even be ended

    def _await_admission(self) -> None:
        """Wait until the API server takes a pod like the new one: Spark is not asked for one that it could not make."""
        told = ""
        while refused := self._refused():
            if refused != told:
                told = refused
                self._say(f"executor {self._source.executor_id} stays until the API server takes a pod in its place: {refused}")
            self._check_wanted(f"the API server takes no pod for it: {refused}")
            self._pause(_ADMISSION_SECONDS)

    def _refused(self) -> str:
        try:
            alike = self._pods.like(self._source)
        except JavaError as error:
            LOG.warning("placement %s: executors' pods cannot be read: %s", self._request.placement_id, in_words(error))
            return ""
        if alike is None:
            return ""
        return self._pods.refused(bound_template(alike, self._request, self._source.node, PLACEMENT_ANNOTATION))

    def _await_new(self, then: Callable[[], None]) -> ExecutorPod:
        """Have Spark make an executor where the request wants it, and return it once it is there."""
        self._make(then)
        while True:
            try:
                new = self._await(self._here)
            except _RemovedError:
                self._make(lambda: None)
            else:
                break
        self._say(f"executor {new.executor_id} is there", node=new.node)
        reached("placement-registered")
        return new

    def _make(self, then: Callable[[], None]) -> None:
        """Have Spark make an executor's pod while the template binds it."""
        before = self._pods.template_path
        with tempfile.TemporaryDirectory(prefix="spark-drain-placement-") as folder:
            template = Path(folder) / "executor.json"
            template.write_text(json.dumps(bound_template(self._pods.template(), self._request, self._source.node, PLACEMENT_ANNOTATION)))
            self._pods.use_template(template)
            try:
                self._target.hold([])
                reached("placement-reserved")
                then()
                made = self._await(self._made)
            finally:
                self._pods.use_template(before)  # a replacement for another lost executor is not bound
        self._say(f"waiting for executor {made.executor_id}", new_executor_id=made.executor_id)
        reached("placement-made")

    def _await(self, look: Callable[[], ExecutorPod | None]) -> ExecutorPod:
        while True:
            try:
                found = look()
                own = self._own()
                self._target.hold([pod.executor_id for pod in own])
                self._last = next(iter(own), self._last)
            except JavaError as error:  # the API server may be back before the time is over
                LOG.warning("placement %s: executors' pods cannot be read: %s", self._request.placement_id, in_words(error))
                found = None
            if found is not None:
                return found
            self._check_wanted(_missing(self._last))
            self._pause(_LOOK_SECONDS)

    def _check_wanted(self, missing: str) -> None:
        """Give up where the placement is not wanted any more, or its time is over; then it is told what was missing."""
        if why := self._caller.unwanted():
            raise _GivenUpError(f"{why}: executor {self._source.executor_id} was left alone")
        if is_due(self._request):
            raise _DueError
        seconds = self._request.expiry_seconds
        if monotonic() - self._begun > seconds:
            raise _GivenUpError(f"the new executor was not there after {seconds} s: {missing}; the running one was left alone")

    def _pause(self, seconds: float) -> None:
        self._caller.beside()
        time.sleep(seconds)

    def _own(self) -> list[ExecutorPod]:
        return [pod for pod in self._pods.pods().values() if pod.placement_id == self._request.placement_id]

    def _made(self) -> ExecutorPod | None:
        return next(iter(self._own()), None)

    def _here(self) -> ExecutorPod | None:
        registered = self._pods.registered()
        own = self._own()
        if not own and self._target.dynamic and not self._started:
            raise _RemovedError
        if all(pod.over for pod in own):  # also where Spark has removed it since
            new = self._response.new_executor_id
            raise _GivenUpError(f"executor {new} has ended before it was there: executor {self._source.executor_id} was left alone")
        self._started = any(pod.started for pod in own)
        here = next((pod for pod in own if pod.executor_id in registered and not pod.over), None)
        for pod in own:
            if pod.executor_id not in registered | {self._response.new_executor_id}:
                self._remove(pod)  # Spark wanted more while the template was there: it makes them anew, and they may run anywhere
        return here

    def _remove_surplus(self, kept: Collection[str]) -> None:
        """Remove the pod that was asked for and is not kept, and what Spark has made beside it and is too many."""
        quiet = 0
        for _ in range(_MOST_LOOKS):
            try:
                surplus = self._surplus(kept)
                for pod in surplus:
                    self._remove(pod)
            except JavaError as error:
                LOG.warning("placement %s: executors' pods cannot be read: %s", self._request.placement_id, in_words(error))
                quiet = 0
            else:
                quiet = 0 if surplus else quiet + 1
            if quiet == _QUIET_LOOKS:
                return
            self._pause(_QUIET_SECONDS)
        LOG.warning("placement %s: more executors than the %d that are wanted may be left", self._request.placement_id, self._target.wanted)

    def _surplus(self, kept: Collection[str]) -> list[ExecutorPod]:
        alive = [pod for pod in self._pods.pods().values() if not pod.over]
        others = [pod for pod in alive if pod.executor_id not in kept]
        own = [pod for pod in others if pod.placement_id == self._request.placement_id]
        target = self._target.wanted
        if own or len(alive) <= target:
            return own
        if self._target.dynamic:  # those that have registered it ends by itself, when they are idle
            registered = self._pods.registered()
            others = [pod for pod in others if pod.executor_id not in registered]
        return others[target - len(alive) :]

    def _remove(self, pod: ExecutorPod) -> None:
        """Remove a pod; one that has registered in the last moment is ended as any executor is."""
        if pod.executor_id in self._pods.registered():
            self._pods.decommission(pod.executor_id)
            self._await_end(pod.executor_id)
            return
        try:
            self._pods.delete(pod)
        except OSError as error:
            LOG.warning("placement %s: %s", self._request.placement_id, error)

    # -- the old executor ------------------------------------------------------------------------------------------------------------

    def _stop(self, new: ExecutorPod) -> bool:
        """End the old executor, which is one too many now; True when it is gone."""
        self._target.release()
        if not self._pods.decommission(self._source.executor_id):  # it has ended by itself, and Spark wanted one in its place
            self._remove_surplus(self._before | {new.executor_id})
        reached("placement-decommissioned")
        return self._await_end(self._source.executor_id)

    def _await_end(self, executor_id: str) -> bool:
        stop = Stop(self._pods, executor_id)
        while (over := stop.over()) is None:
            self._pause(_LOOK_SECONDS)
        return over

    def _await_batch(self, first_batch: FirstBatch) -> Cost | None:
        """Return the slowest of the batches that began after the old executor had gone, where they end soon."""
        since, begun = utc_now(), monotonic()
        busy = begun
        while (time_ := monotonic()) - begun < _BATCH_SECONDS and time_ - busy < _IDLE_SECONDS and not self._caller.unwanted():
            if first_batch.is_expected(since):
                busy = time_
            self._pause(_LOOK_SECONDS)
        return first_batch.slowest(since)

    def _note(self, cost: Cost | None) -> str:
        if cost is None:
            return ""
        self._response = replace(self._response, batch_query=cost.query, first_batch_ms=cost.milliseconds, ordinary_batch_ms=cost.ordinary)
        return (
            f"; the first batch of query {cost.query} after that took {cost.milliseconds / 1000:.1f} s, where {cost.ordinary / 1000:.1f} s "
            "was ordinary"
        )

    # -- the response ----------------------------------------------------------------------------------------------------------------

    def _say(self, message: str, **changes: str | bool) -> None:
        self._response = replace(self._response, message=message, **changes)  # type: ignore[arg-type]
        self._caller.respond(self._response)

    def _end(self, status: PlacementStatus, message: str) -> None:
        self._response = replace(self._response, status=status, message=message)
        self._caller.respond(self._response)


def _missing(pod: ExecutorPod | None) -> str:
    if pod is None:
        return "Spark has made no pod for it"
    if not pod.node:
        return f"pod {pod.name} was not scheduled: {pod.unscheduled or 'no reason is given'}"
    return f"pod {pod.name} on {pod.node} is {pod.phase}, and its executor has not registered"
