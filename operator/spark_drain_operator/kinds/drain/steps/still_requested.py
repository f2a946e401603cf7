"""Step: what is complete is scaled down while its request stands; without it, nothing holds the driver."""

from __future__ import annotations

from spark_drain_operator.engine.outcome import DONE, Outcome
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.steps.request import removed

__all__ = ["run"]


def run(drain: DrainPass) -> Outcome:
    """Go on only where the driver is held, or scaling down has been asked for already."""
    return removed(drain) if drain.notification is None and drain.status.scale_down_time is None else DONE
