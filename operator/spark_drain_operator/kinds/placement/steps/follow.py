"""Step: what the agent makes of the request; the last one."""

from __future__ import annotations

from spark_drain_store.channel import config_map_names
from spark_drain_store.placement_messages import PlacementResponse, PlacementStatus

from spark_drain_operator.clock import format_time, later
from spark_drain_operator.engine.outcome import Ended, Outcome, Waiting, ended
from spark_drain_operator.kinds.placement.decide import STOP_SECONDS, answered, replaced_before_the_end
from spark_drain_operator.kinds.placement.observation import PlacementPass
from spark_drain_operator.kinds.placement.reasons import ConditionType, Phase, Reason, message_of

__all__ = ["run", "see"]

_MOST_MS = 2**31 - 1


def see(placement: PlacementPass, response: PlacementResponse) -> None:
    """Copy what the agent has answered into the status, cut to what the schema takes."""
    status = placement.status
    status.executor_node = response.source_node[:253] or status.executor_node
    status.new_executor_id = response.new_executor_id[:63] or status.new_executor_id
    status.new_node = response.node[:253] or status.new_node
    if response.first_batch_ms is not None and response.ordinary_batch_ms is not None:
        status.batch_query = response.batch_query[:253]
        status.first_batch_ms = min(max(0, response.first_batch_ms), _MOST_MS)
        status.ordinary_batch_ms = min(max(0, response.ordinary_batch_ms), _MOST_MS)
    status.set(ConditionType.ACKNOWLEDGED, "True", Reason.AGENT_ANSWERED, message_of(Reason.AGENT_ANSWERED, run=response.run_id))


def run(placement: PlacementPass) -> Outcome:
    """Wait for the answer that ends the placement, for as long as the run lives that can give it."""
    status, response = placement.status, placement.response
    if response is not None:
        see(placement, response)
    ending = answered(response, status.withdrawal_reason)
    if ending is not None:
        return Ended(ending)
    application = placement.application
    driver = application.serving_driver if application is not None and application.uid == status.application_uid else None
    if driver is None or driver.run_id != status.run_id:
        replaced = replaced_before_the_end(response)
        if replaced is not None:
            return Ended(replaced)
        state = application.state if application is not None else "none"
        return ended(Phase.FAILED, Reason.RUN_ENDED, message_of(Reason.RUN_ENDED, run=status.run_id, state=state))
    if response is None:
        return _unanswered(placement)
    message = response.message or f"the agent is at {response.status}"
    if response.status is PlacementStatus.IN_PROGRESS:
        late = later(response.updated_at, placement.spec.expiry_seconds + STOP_SECONDS)
        if placement.now >= late:
            message = f"the agent has said nothing since {format_time(response.updated_at)}: {message}"
            status.set(ConditionType.STALLED, "True", Reason.AGENT_NOT_RESPONDING, message)
    return Waiting(placement.settings.resync_seconds, message)


def _unanswered(placement: PlacementPass) -> Outcome:
    status, spec = placement.status, placement.spec
    assert status.request_time is not None
    malformed = placement.placements.malformed.get(placement.placement_id)
    until = later(status.request_time, spec.acknowledge_timeout)
    left = (until - placement.now).total_seconds()
    if left <= 0:
        requests, reports = config_map_names(spec.application.name, spec.application.kind)
        detail = f" Its response cannot be read: {malformed}" if malformed else ""
        message = message_of(
            Reason.AGENT_NOT_RESPONDING, seconds=spec.acknowledge_timeout, requests=requests, reports=reports, detail=detail
        )
        return ended(Phase.FAILED, Reason.AGENT_NOT_RESPONDING, message)
    if malformed:
        status.set(ConditionType.STALLED, "True", Reason.MALFORMED_RESPONSE, malformed)
    message = message_of(Reason.WAITING_FOR_AGENT, run=status.run_id, until=format_time(until))
    status.set(ConditionType.ACKNOWLEDGED, "Unknown", Reason.WAITING_FOR_AGENT, message)
    return Waiting(min(left, placement.settings.resync_seconds), message)
