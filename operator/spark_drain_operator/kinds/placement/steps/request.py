"""Step: the request to the agent."""

from __future__ import annotations

from spark_drain_store.channel import config_map_names
from spark_drain_store.placement_messages import PlacementRequest, UnsupportedDestinationError

from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting, ended
from spark_drain_operator.kinds.placement.decide import decommission_at
from spark_drain_operator.kinds.placement.observation import PlacementPass
from spark_drain_operator.kinds.placement.reasons import ConditionType, Phase, Reason, message_of
from spark_drain_operator.kinds.placement.resource import RESOURCE

__all__ = ["run"]

_POLL_SECONDS = 2.0
_MOST_REQUESTS = 100
"""With the longest labels they are 600 kB: a ConfigMap takes 1 MiB, and a drain's notification has to have room beside them."""


def run(placement: PlacementPass) -> Outcome:
    """Write the request once; it is bound to the run whose executor is meant."""
    status, request, response = placement.status, placement.request, placement.response
    if request is None and status.request_id:
        application = placement.application
        if response is not None and response.status.finished:
            return DONE
        if application is None or application.uid != status.application_uid:  # the ConfigMaps have gone with it
            return DONE
        requests, _ = config_map_names(placement.spec.application.name, placement.spec.application.kind)
        return ended(Phase.CANCELLED, Reason.REQUEST_REMOVED, message_of(Reason.REQUEST_REMOVED, requests=requests))
    if request is None:
        return _write(placement)
    if not status.request_id:  # of an operator that was killed before it had noted it
        status.run_id, status.executor_id = (request.run_id or "")[:253], request.executor_id[:63]
        status.application_uid = status.application_uid or (placement.application.uid if placement.application is not None else "")
    status.request_id, status.request_time = request.placement_id, request.created_at.replace(microsecond=0)
    accepted = message_of(Reason.ACCEPTED, executor=request.executor_id, run=request.run_id)
    status.set(ConditionType.ACCEPTED, "True", Reason.ACCEPTED, accepted)
    return DONE


def _write(placement: PlacementPass) -> Outcome:
    application, ref, spec, status = placement.application, placement.spec.application, placement.spec, placement.status
    assert application is not None
    request = PlacementRequest(
        placement_id=placement.placement_id,
        created_at=placement.now,
        executor_id=status.executor_id,
        destination_host=spec.destination_host,
        node_selector=spec.node_selector,
        run_id=status.run_id,
        expiry_seconds=spec.expiry_seconds,
        decommission_at=decommission_at(placement.created, spec.decommission_after),
    )
    try:
        request.check()
    except UnsupportedDestinationError as error:
        return ended(Phase.REJECTED, Reason.BAD_REQUEST, str(error))
    if len(placement.placements.requests) >= _MOST_REQUESTS:
        message = message_of(Reason.WAITING_FOR_OTHERS, count=len(placement.placements.requests))
        status.set(ConditionType.ACCEPTED, "Unknown", Reason.WAITING_FOR_OTHERS, message)
        return Waiting(placement.settings.resync_seconds, message)
    owners = placement.cluster.channels.owners(placement.namespace, ref.kind, application.name, application.uid)
    if owners.another:
        message = message_of(Reason.CONFIG_MAPS_OF_ANOTHER, names=", ".join(owners.another), name=application.name)
        status.set(ConditionType.ACCEPTED, "Unknown", Reason.CONFIG_MAPS_OF_ANOTHER, message)
        return Waiting(_POLL_SECONDS, message)
    if not owners.complete:
        owner, requests = placement.adapter.owner_reference(application), bool(placement.requests_version)
        placement.cluster.channels.ensure(placement.channel, placement.namespace, ref.kind, ref.name, owner, requests=requests)
    placement.cluster.objects(RESOURCE).confirm(placement.body)
    placement.write(request)
    _forget_old_responses(placement)
    return run(placement)


def _forget_old_responses(placement: PlacementPass) -> None:
    """Remove answers that came after their request was removed: nobody else would, and a ConfigMap has a limit.

    After the write: it has shown that there were no other requests when the responses were read.
    """
    old = placement.placements.responses.keys() - placement.placements.requests.keys()
    if old:
        placement.channel.reports.write(dict.fromkeys(old))
