"""The steps of a drain, one per module, in the order in which they are gone through."""

from spark_drain_operator.kinds.drain.steps import (
    acknowledge,
    approve,
    await_application,
    complete,
    confirm_executors,
    find_run,
    flush,
    keep_result,
    request,
    restart,
    scale_down,
    stop_sources,
)

__all__ = ["COMPLETE_STEPS", "LAST_STEPS", "RESTART_STEPS", "STEPS"]

LAST_STEPS = (scale_down.run, restart.run, complete.run)
"""All that is left when the application is gone: with it its ConfigMaps go, there is no report any more, and none is needed."""

COMPLETE_STEPS = (await_application.run, keep_result.run, *LAST_STEPS)
"""What follows once every executor has reported: no later report takes that back, nor what cannot be stored."""

RESTART_STEPS = (restart.run, complete.run)
"""All that is left of a drain that has decided to start the application again: what runs from then on is not what was drained."""

STEPS = (
    await_application.run,
    find_run.run,
    request.run,
    acknowledge.run,
    approve.run,
    stop_sources.run,
    flush.run,
    confirm_executors.run,
)
"""Up to where the status says that every executor has reported."""
