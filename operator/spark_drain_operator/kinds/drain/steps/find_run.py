"""Step: the driver that is to be drained."""

from __future__ import annotations

from spark_drain_store.channel import config_map_names

from spark_drain_operator.applications.protocol import Application, current_driver
from spark_drain_operator.engine.outcome import DONE, Ended, Outcome, Waiting, ended
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain.messages import interrupted
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason, message_of
from spark_drain_operator.kinds.drain.spec import DrainSpec
from spark_drain_operator.storage.pods import DriverPod

__all__ = ["decide", "not_running", "run"]


def decide(
    spec: DrainSpec, application: Application | None, namespace: str, resync: float = 30.0, told: tuple[str, str] | None = None
) -> Outcome | DriverPod:
    """Return the driver, or what to do without one; ``told``: id and state of an earlier drain that only the same version ends."""
    driver = current_driver(application)
    ref = spec.application
    if driver is not None:
        if spec.run_id and driver.run_id and driver.run_id != spec.run_id:
            return ended(Phase.REJECTED, Reason.STALE_RUN_ID, message_of(Reason.STALE_RUN_ID, wanted=spec.run_id, found=driver.run_id))
        return driver
    if application is None:
        state, coming = "none", False
        missing = message_of(Reason.APPLICATION_NOT_FOUND, kind=ref.kind, name=ref.name, namespace=namespace)
    else:
        state, coming, missing = application.state or "New", not application.will_not_run, ""
    if not coming and spec.if_not_running == "Succeed":
        if application is not None and told is not None:
            _, reports = config_map_names(ref.name, ref.kind)
            message = message_of(Reason.DRAIN_INTERRUPTED, drain=told[0], state=told[1], reports=reports)
            return ended(Phase.REJECTED, Reason.DRAIN_INTERRUPTED, message)
        return ended(Phase.NOTHING_TO_DRAIN, Phase.NOTHING_TO_DRAIN, missing or f"{ref.described()} is not running (state {state})")
    if not coming and spec.if_not_running == "Reject":
        reason = Reason.APPLICATION_NOT_FOUND if application is None else Reason.APPLICATION_NOT_RUNNING
        return ended(
            Phase.REJECTED,
            reason,
            message_of(reason, kind=ref.kind, name=ref.name, namespace=namespace, state=state),
        )
    return Waiting(resync, missing or message_of(Reason.WAITING_FOR_DRIVER, kind=ref.kind, name=ref.name, state=state))


def _decide(drain: DrainPass) -> Outcome | DriverPod:
    told = interrupted(drain.messages.reports, drain.messages.malformed)
    return decide(drain.spec, drain.application, drain.namespace, drain.settings.resync_seconds, told)


def not_running(drain: DrainPass) -> Ending | None:
    """Return how a drain ends whose application does not run before anything was touched, as `spec.ifNotRunning` says."""
    decision = _decide(drain)
    return decision.ending if isinstance(decision, Ended) else None


def run(drain: DrainPass) -> Outcome:
    """Remember application and driver, until a notification is bound to it."""
    application = drain.application
    if drain.status.drain_id or drain.notification is not None:
        return DONE
    decision = _decide(drain)
    if isinstance(decision, DriverPod):
        assert application is not None
        drain.status.application_uid = application.uid
        return DONE
    if isinstance(decision, Waiting):
        reason = Reason.APPLICATION_NOT_FOUND if application is None else Reason.WAITING_FOR_DRIVER
        drain.status.set(ConditionType.ACCEPTED, "Unknown", reason, decision.message)
    return decision
