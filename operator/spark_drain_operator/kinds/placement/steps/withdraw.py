"""Step: the placement is no longer wanted."""

from __future__ import annotations

from dataclasses import replace

from spark_drain_operator.engine.outcome import DONE, Ended, Outcome, Waiting, ended
from spark_drain_operator.kinds.placement.decide import answered, give_up_at, replaced_before_the_end
from spark_drain_operator.kinds.placement.observation import PlacementPass
from spark_drain_operator.kinds.placement.reasons import ConditionType, Phase, Reason, message_of

__all__ = ["run", "wish_of"]


def wish_of(*, deleted: bool, cancel: bool) -> Reason | None:
    """Return why a placement is no longer wanted, None where it is."""
    if deleted:
        return Reason.DELETED
    return Reason.CANCEL_REQUESTED if cancel else None


def run(placement: PlacementPass) -> Outcome:
    """Mark the request as withdrawn and wait for the agent's answer, for as long as it may take to end what it cannot undo."""
    status, application = placement.status, placement.application
    wish = wish_of(deleted=placement.deleted, cancel=placement.spec.cancel)
    if wish is None:
        return DONE
    if not placement.begun:
        return ended(Phase.CANCELLED, wish, message_of(wish))
    status.withdrawal_reason, status.withdrawal_time = str(wish), status.withdrawal_time or placement.now
    request = placement.request
    if request is not None and not request.withdrawn:
        placement.write(replace(request, withdrawn=True))
        placement.read_placements()
    if answered(placement.response, wish) is not None:
        return DONE  # `follow` ends it
    left = (give_up_at(status.withdrawal_time, placement.spec.acknowledge_timeout, placement.response) - placement.now).total_seconds()
    over = not placement.unreadable and (application is None or not application.driver_alive)
    replaced = replaced_before_the_end(placement.response) if over or left <= 0 else None
    if replaced is not None:
        return Ended(replaced)
    if over:
        return ended(Phase.CANCELLED, wish, f"{message_of(wish)}; no driver of the application is alive")
    if left <= 0:
        requests = placement.placements.status(placement.placement_id)
        return ended(
            Phase.CANCELLED,
            wish,
            f"{message_of(wish)}; the agent has not answered, and is no longer waited for (it was at {requests}): an agent that finds the "
            "request removed leaves the executor alone, where the new one is not there yet",
        )
    message = f"{message_of(wish)}; waiting for the agent to give the placement up"
    status.set(ConditionType.ACKNOWLEDGED, "Unknown", Reason.WAITING_FOR_AGENT, message)
    return Waiting(min(left, placement.settings.resync_seconds), message)
