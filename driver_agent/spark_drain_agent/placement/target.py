"""How many executors Spark is asked for while one of them is being replaced."""

from __future__ import annotations

from collections.abc import Collection

from spark_drain_agent.placement.decide import asked_for
from spark_drain_agent.spark_internals.executor_pods import ExecutorPods

__all__ = ["Target"]


class Target:
    """The number of executors: what Spark wants by itself, and what a move adds to it.

    Dynamic allocation wants another number at any time, and tells the pod allocator, which then forgets what it was asked for here: so
    that is asked for again at each look, and at the end the number is Spark's own. Meanwhile Spark ends idle executors only as long as
    there are enough without the one that is being replaced, so that there are enough when it goes.

    Parameters
    ----------
    pods
        The application's executors.
    source
        Id of the executor that is being replaced.
    forced
        Whether it ends before the new one comes.
    """

    def __init__(self, pods: ExecutorPods, source: str, *, forced: bool) -> None:
        self._pods = pods
        self._source = source
        self._forced = forced
        self._dynamic = pods.dynamic_allocation if pods.dynamic_allocation.enabled else None
        self._fixed = pods.target

    @property
    def dynamic(self) -> bool:
        """Whether dynamic allocation decides on the number."""
        return self._dynamic is not None

    @property
    def wanted(self) -> int:
        """How many executors Spark wants by itself."""
        return self._fixed if self._dynamic is None else self._dynamic.wanted

    def hold(self, own: Collection[str]) -> None:
        """Ask for as many as are needed so that the new executor, one of ``own``, comes or stays; Spark gets along without the old one."""
        others: Collection[str] = ()
        if self._dynamic is not None:
            self._dynamic.set_aside(self._source)
            others = self._pods.active() - set(own)
        count = asked_for(self.wanted, others, self._source, forced=self._forced)
        if self._pods.target != count:
            self._pods.target = count

    def release(self) -> None:
        """Ask for as many as Spark wants by itself."""
        count = None
        while count != (wanted := self.wanted):  # Spark may have asked for another number in between, which ours has replaced
            self._pods.target = count = wanted

    def take_back(self) -> None:
        """Have dynamic allocation count on the old executor again, which is not replaced."""
        if self._dynamic is not None:
            self._dynamic.take_back(self._source)
