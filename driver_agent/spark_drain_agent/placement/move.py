"""One placement: the new executor is there before the old one goes (Samza's RESERVE, STOP; facts of Spark in `executor_pods`)."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from spark_drain_store.placement_messages import Destination, PlacementRequest, PlacementResponse, PlacementStatus

from spark_drain_agent.clock import monotonic
from spark_drain_agent.milestones import LOG, reached
from spark_drain_agent.placement.pod_template import bound_template
from spark_drain_agent.spark_internals.errors import JavaError, in_words
from spark_drain_agent.spark_internals.executor_pods import PLACEMENT_ANNOTATION, ExecutorPod, ExecutorPods

__all__ = ["Move"]

_LOOK_SECONDS = 0.2
_QUIET_SECONDS, _QUIET_LOOKS, _MOST_LOOKS = 1.0, 3, 60
"""Spark looks for missing executors once in spark.kubernetes.allocation.batch.delay, by default 1 s."""
_STOP_SECONDS = 120.0
"""How long an executor that is decommissioned may take to end by itself, before it is killed; and as long again after that."""


class _GivenUpError(Exception):
    """The new executor is not there, and will not be waited for; the text says why."""


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
    respond
        Called with each new response, which it completes and stores.
    unwanted
        Returns why the placement is not wanted any more, or "".
    """

    def __init__(
        self,
        pods: ExecutorPods,
        request: PlacementRequest,
        source: ExecutorPod,
        respond: Callable[[PlacementResponse], None],
        unwanted: Callable[[], str],
    ) -> None:
        self._pods = pods
        self._request = request
        self._source = source
        self._respond = respond
        self._unwanted = unwanted
        self._begun = monotonic()
        self._before = frozenset(pods.pods())
        self._response = PlacementResponse(
            placement_id=request.placement_id,
            status=PlacementStatus.IN_PROGRESS,
            updated_at=request.created_at,
            executor_id=request.executor_id,
            destination_host=request.destination_host,
            source_node=source.node,
        )

    def run(self) -> None:
        """Replace the executor, or leave everything as it was; the response says which."""
        target = self._pods.target
        forced = self._request.destination_host == Destination.FORCE_RESTART_LAST_SEEN
        self._say(f"executor {self._source.executor_id} on {self._source.node} is being replaced")
        try:
            new = self._restart(target) if forced else self._reserve(target)
        except _GivenUpError as given_up:
            self._end(PlacementStatus.FAILED, str(given_up))
            return
        if not forced and not self._stop(target, new):
            self._end(
                PlacementStatus.FAILED,
                f"executor {new.executor_id} runs on {new.node}, but executor {self._source.executor_id} does not end",
            )
            return
        seconds = monotonic() - self._begun
        self._end(
            PlacementStatus.SUCCEEDED,
            f"executor {new.executor_id} on {new.node} has replaced executor {self._source.executor_id} on {self._source.node} "
            f"after {seconds:.1f} s",
        )

    # -- the new executor ------------------------------------------------------------------------------------------------------------

    def _reserve(self, target: int) -> ExecutorPod:
        """Have one executor more, at the destination; where that fails, the wanted number and the template are as before."""
        try:
            return self._await_new(target + 1, lambda: None)
        except BaseException:
            self._pods.target = target
            self._remove_surplus(target, self._before)
            raise

    def _restart(self, target: int) -> ExecutorPod:
        """End the executor first, and have Spark replace it on its node; where that fails, anywhere."""
        try:
            return self._await_new(target, lambda: self._pods.kill(self._source.executor_id))
        except _GivenUpError as given_up:
            for pod in self._own():
                self._remove(pod)  # Spark makes another one, which may run anywhere
            raise _GivenUpError(f"{given_up}; executor {self._source.executor_id} was ended, and Spark replaces it on any node") from None

    def _await_new(self, target: int, then: Callable[[], None]) -> ExecutorPod:
        """Want so many executors while the template binds them, and return the one that has come."""
        before = self._pods.template_path
        with tempfile.TemporaryDirectory(prefix="spark-drain-placement-") as folder:
            template = Path(folder) / "executor.json"
            template.write_text(json.dumps(bound_template(self._pods.template(), self._request, self._source.node, PLACEMENT_ANNOTATION)))
            self._pods.use_template(template)
            try:
                self._pods.target = target
                reached("placement-reserved")
                then()
                made = self._await(self._made)
            finally:
                self._pods.use_template(before)  # a replacement for another lost executor is not bound
        self._say(f"waiting for executor {made.executor_id}", new_executor_id=made.executor_id)
        reached("placement-made")
        new = self._await(self._here)
        self._say(f"executor {new.executor_id} is there", node=new.node)
        reached("placement-registered")
        return new

    def _await(self, look: Callable[[], ExecutorPod | None]) -> ExecutorPod:
        last = None
        while True:
            try:
                found = look()
                last = next(iter(self._own()), last)
            except JavaError as error:  # the API server may be back before the time is over
                LOG.warning("placement %s: executors' pods cannot be read: %s", self._request.placement_id, in_words(error))
                found = None
            if found is not None:
                return found
            if why := self._unwanted():
                raise _GivenUpError(f"{why}: executor {self._source.executor_id} was left alone")
            if monotonic() - self._begun > self._request.expiry_seconds:
                raise _GivenUpError(_expired(self._request.expiry_seconds, last))
            time.sleep(_LOOK_SECONDS)

    def _own(self) -> list[ExecutorPod]:
        return [pod for pod in self._pods.pods().values() if pod.placement_id == self._request.placement_id]

    def _made(self) -> ExecutorPod | None:
        return next(iter(self._own()), None)

    def _here(self) -> ExecutorPod | None:
        registered = self._pods.registered()
        own = self._own()
        if all(pod.over for pod in own):  # also where Spark has removed it since
            new = self._response.new_executor_id
            raise _GivenUpError(f"executor {new} has ended before it was there: executor {self._source.executor_id} was left alone")
        return next((pod for pod in own if pod.executor_id in registered and not pod.over), None)

    def _remove_surplus(self, target: int, kept: Collection[str]) -> None:
        """Remove the pod that was asked for and is not kept, and what Spark has made beside it and is too many."""
        quiet = 0
        for _ in range(_MOST_LOOKS):
            try:
                surplus = self._surplus(target, kept)
                for pod in surplus:
                    self._remove(pod)
            except JavaError as error:
                LOG.warning("placement %s: executors' pods cannot be read: %s", self._request.placement_id, in_words(error))
                quiet = 0
            else:
                quiet = 0 if surplus else quiet + 1
            if quiet == _QUIET_LOOKS:
                return
            time.sleep(_QUIET_SECONDS)
        LOG.warning("placement %s: more executors than the %d that are wanted may be left", self._request.placement_id, target)

    def _surplus(self, target: int, kept: Collection[str]) -> list[ExecutorPod]:
        alive = [pod for pod in self._pods.pods().values() if not pod.over]
        others = [pod for pod in alive if pod.executor_id not in kept]
        own = [pod for pod in others if pod.placement_id == self._request.placement_id]
        if own or len(alive) <= target:
            return own
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

    def _stop(self, target: int, new: ExecutorPod) -> bool:
        """End the old executor, which is one too many now; True when it is gone."""
        self._pods.target = target
        if not self._pods.decommission(self._source.executor_id):  # it has ended by itself, and Spark wanted one in its place
            self._remove_surplus(target, self._before | {new.executor_id})
        reached("placement-decommissioned")
        return self._await_end(self._source.executor_id)

    def _await_end(self, executor_id: str) -> bool:
        begun = monotonic()
        while executor_id in self._pods.registered():
            waited = monotonic() - begun
            if waited > 2 * _STOP_SECONDS:
                return False
            if waited > _STOP_SECONDS or not (self._pods.decommissions or self._pods.busy(executor_id)):
                self._pods.kill(executor_id)
            time.sleep(_LOOK_SECONDS)
        return True

    # -- the response ----------------------------------------------------------------------------------------------------------------

    def _say(self, message: str, **changes: str) -> None:
        self._response = replace(self._response, message=message, **changes)  # type: ignore[arg-type]
        self._respond(self._response)

    def _end(self, status: PlacementStatus, message: str) -> None:
        self._response = replace(self._response, status=status, message=message)
        self._respond(self._response)


def _expired(seconds: int, pod: ExecutorPod | None) -> str:
    if pod is None:
        why = "Spark has made no pod for it"
    elif not pod.node:
        why = f"pod {pod.name} was not scheduled: {pod.unscheduled or 'no reason is given'}"
    else:
        why = f"pod {pod.name} on {pod.node} is {pod.phase}, and its executor has not registered"
    return f"the new executor was not there after {seconds} s: {why}; the running one was left alone"
