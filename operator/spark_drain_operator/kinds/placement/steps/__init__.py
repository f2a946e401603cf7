"""The steps of a placement, one per module, in the order in which they are gone through."""

from spark_drain_operator.kinds.placement.steps import await_application, find_executor, follow, request, withdraw

__all__ = ["STEPS"]

STEPS = (withdraw.run, await_application.run, find_executor.run, request.run, follow.run)
