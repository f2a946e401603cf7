"""Up to the point of no return: plan every query, freeze and check every query, look at the store once more, then commit to it."""

from __future__ import annotations

import time

from spark_drain_store import DrainNotification, DrainOptions, DrainState, StoreError, UnsupportedOptionError

from spark_drain_agent import reasons
from spark_drain_agent.callbacks import CallbackError, call_back
from spark_drain_agent.checkpoint import UnknownCheckpointFormatError
from spark_drain_agent.feeds import FEEDS, CycleError, UnknownFeedError, check_order, feeds
from spark_drain_agent.hold import Phase
from spark_drain_agent.ongoing import POLL_SECONDS, DrainEndedError, OngoingDrain
from spark_drain_agent.outputs import check_outputs
from spark_drain_agent.plan import BOUNDED_TRIGGERS, PlanRejectedError, check_options
from spark_drain_agent.queries import TrackedQuery
from spark_drain_agent.query_drain import QueryDrain
from spark_drain_agent.spark_internals import JavaError, UnsupportedSparkError
from spark_drain_agent.steps.freeze import QueryEndedError
from spark_drain_agent.trace import LOG, reached

__all__ = ["commit_to_drain", "parse_options"]

_QUIET_SECONDS = 3.0
_STORE_PATIENCE_SECONDS = 60.0


class _StoreAwayError(Exception):
    """The store cannot be read, so nobody knows whether the drain is still wanted."""


def parse_options(drain: OngoingDrain) -> DrainOptions:
    """Return the notification's options; raises `DrainEndedError` (Rejected) for what cannot be understood."""
    try:
        return drain.notification.parsed_options()
    except UnsupportedOptionError as error:
        raise DrainEndedError(DrainState.REJECTED, reasons.UNSUPPORTED_OPTION, str(error)) from error


def commit_to_drain(drain: OngoingDrain) -> None:
    """Bring a fresh drain beyond the point of no return.

    Raises
    ------
    DrainEndedError
        It was rejected, withdrawn, or could not be done; every query runs on as if nothing had been.
    """
    drain.reporter.change(state=DrainState.ACKNOWLEDGED, reason="", message="")
    drain.options = parse_options(drain)
    caught_up = False
    while True:
        try:
            with drain.timed("plan"):
                _wait_until_in_place(drain)
                _plan(drain)
            _wait_for_approval(drain)
            if drain.options.mode == "CatchUp" and not caught_up:
                _catch_up(drain)
                caught_up = True  # a store that is away afterwards does not make the request a later one
            _freeze_and_decide(drain)
            return
        except _StoreAwayError:
            # The pipeline must not stand still because the API server does: read on, and try again when it is back.
            LOG.warning("drain %s: the metadata store is away; the queries read on until it is back", drain.uuid)
            _wait_for_store(drain)


def _wait_until_in_place(drain: OngoingDrain) -> None:
    gate, registry = drain.host.gate, drain.host.registry
    while not (gate.user_is_waiting or (registry.all() and gate.in_place(_QUIET_SECONDS))):
        drain.keep_waiting()
        time.sleep(POLL_SECONDS)


def _plan(drain: OngoingDrain) -> None:
    try:
        check_options(drain.options)
        check_outputs(drain.options, drain.host.internals)
        candidates = _candidates(drain)
        selected = _selected(drain.options, candidates)
        drain.targets = [QueryDrain(item, drain.options, drain.uuid) for item in selected]
        drain.beside = [item for item in candidates if item not in selected]
        for target in drain.targets:
            target.plan()
        if drain.options.mode != "Stop":  # nothing is emitted, so nothing needs to arrive
            _connect(drain, candidates)
    except (CycleError, UnknownFeedError) as error:
        raise DrainEndedError(DrainState.REJECTED, reasons.UNORDERED_QUERIES, str(error)) from error
    except (PlanRejectedError, UnsupportedSparkError, UnknownCheckpointFormatError) as error:
        reason = error.reason if isinstance(error, PlanRejectedError) else reasons.UNSUPPORTED_QUERY
        raise DrainEndedError(DrainState.REJECTED, reason, str(error)) from error
    except JavaError as error:
        raise DrainEndedError(DrainState.FAILED, reasons.INTERNAL_ERROR, f"planning failed: {error}") from error
    drain.reporter.change(queries=drain.query_reports())


def _candidates(drain: OngoingDrain) -> list[TrackedQuery]:
    """Return the queries that run, and bounded ones that have run to their end.

    A query that failed fails the drain; one that the application had stopped is left as it is, and named.
    """
    found, stopped = [], []
    for tracked in drain.host.registry.all():
        if tracked.query is None:
            continue
        if not tracked.live.thread_alive and tracked.live.error:
            raise DrainEndedError(
                DrainState.FAILED,
                reasons.QUERY_FAILED,
                f"{tracked.label} has failed, so what it read is not all processed: {tracked.live.error[:500]}",
            )
        if tracked.live.thread_alive or tracked.captured.trigger in BOUNDED_TRIGGERS:
            found.append(tracked)
        else:
            stopped.append(tracked.label)
    _check_all_seen(drain, found)
    drain.stopped_before = tuple(stopped)
    return found


def _check_all_seen(drain: OngoingDrain, candidates: list[TrackedQuery]) -> None:
    seen = {item.query.id for item in candidates if item.query is not None}
    unseen = [query for query in drain.host.internals.session.streams.active if query.id not in seen]
    if unseen:
        names = ", ".join(str(query.name or query.id) for query in unseen)
        raise PlanRejectedError(
            reasons.UNSUPPORTED_QUERY,
            f"queries {names} were started before the agent was attached: run the application under `python -m spark_drain_agent`, "
            "or call attach(spark) before starting them",
        )


def _selected(options: DrainOptions, candidates: list[TrackedQuery]) -> list[TrackedQuery]:
    if options.queries is None:
        return candidates
    names = {item.captured.query_name for item in candidates}
    unknown = [name for name in options.queries if name not in names]
    if unknown:
        raise PlanRejectedError(
            reasons.UNKNOWN_QUERY, f"queries {', '.join(unknown)} are not running; running are {', '.join(sorted(names)) or 'none'}"
        )
    return [item for item in candidates if item.captured.query_name in options.queries]


def _connect(drain: OngoingDrain, candidates: list[TrackedQuery]) -> None:
    """Find out who feeds whom, and that there is an order to drain them in."""
    candidates = [item for item in candidates if item.captured.query_name or item.location]
    keys = {item.key: item for item in candidates}
    names = {item.captured.query_name or item.label: key for key, item in keys.items()}
    labels = {key: name for name, key in names.items()}
    found = feeds(drain.host.internals.conf(FEEDS), names, {key: item.places() for key, item in keys.items()})
    targets = {target.key for target in drain.targets}
    for target in drain.targets:
        writers = found.get(target.key, ())
        readers = [labels[reader] for reader in found if target.key in found[reader] and reader not in targets]
        others = [labels[writer] for writer in writers if writer not in targets]
        target.feed(
            tuple(writer for writer in writers if writer in targets),
            (
                *(
                    f"{target.label} feeds query {name!r}, which is not drained with it and reads its last rows as any others"
                    for name in readers
                ),
                *(
                    f"{target.label} is fed by query {name!r}, which is not drained with it: the next version reads what that writes"
                    for name in others
                ),
            ),
        )
    try:
        check_order({target.key: target.report.fed_by for target in drain.targets})
    except CycleError as error:
        cycle = " > ".join(repr(labels[key]) for key in error.keys)
        raise CycleError(
            error.keys, f"queries feed each other ({cycle}), so none of them can be drained first: cut it with {FEEDS}, or use mode 'Stop'"
        ) from error


def _wait_for_approval(drain: OngoingDrain) -> None:
    if drain.options.execution == "PlanOnly":
        drain.reporter.change(reason=reasons.PLANNED, message="planned; nothing was touched")
        while True:
            drain.keep_waiting()
            time.sleep(POLL_SECONDS)
    if drain.options.execution == "AfterApproval" and not drain.notification.approved:
        drain.reporter.change(reason=reasons.AWAITING_APPROVAL, message="planned; waits for approval")
        while not drain.notification.approved:
            drain.keep_waiting()
            time.sleep(POLL_SECONDS)


def _catch_up(drain: OngoingDrain) -> None:
    """Read on to the latest offsets of this moment, in all queries at once."""
    try:
        with drain.timed("catchUp"):
            under_way = [target.catch_up(drain.keep_waiting) for target in drain.targets]
            drain.reporter.change(
                reason=reasons.CATCHING_UP,
                message=f"{', '.join(target.label for target in drain.targets)}: reading on to the latest offsets of this moment",
            )
            for catch_up in under_way:
                if catch_up is not None:
                    catch_up.wait()
    except PlanRejectedError as error:
        raise DrainEndedError(DrainState.REJECTED, error.reason, str(error)) from error
    except (QueryEndedError, UnknownCheckpointFormatError, JavaError, OSError) as error:
        raise _explained(error) from error


def _freeze_and_decide(drain: OngoingDrain) -> None:
    gate = drain.host.gate
    with drain.host.start_lock:
        gate.turn(Phase.DECIDING)
    try:
        with drain.timed("freeze"):
            drain.keep_waiting()  # from here on main cannot stop Spark, but it may have done so
            _plan(drain)  # queries may have come and gone while approval was awaited
            drain.reporter.change(state=DrainState.STOPPING, reason="", message="", queries=drain.query_reports())
            first = [target for target in drain.targets if not target.fed]  # the others read on until those are drained
            for target in first:
                target.freeze(drain.keep_waiting)
            _wait_until_settled(drain, first)
            for target in drain.targets:
                target.check_checkpoint()
        reached("settled")
        with drain.timed("callbacks"):
            call_back("before", drain.for_callbacks(), drain.keep_waiting)
        drain.executors = dict(drain.host.internals.executors())
        _look_again(drain)
        drain.beyond_return = True
    except BaseException as error:
        _thaw(drain)
        gate.turn(Phase.OPEN)
        raise _explained(error) from error
    drain.reporter.change_surely(
        time.sleep, state=DrainState.COMMITTING, reason="", message="beyond the point of no return", queries=drain.query_reports()
    )
    gate.turn(Phase.HELD)
    reached("committing")


def _wait_until_settled(drain: OngoingDrain, targets: list[QueryDrain]) -> None:
    """Let what runs come to its end; a batch that outlives the deadline is left alone, and named."""
    if running := _under_way(targets):
        drain.reporter.change(reason=reasons.BATCH_RUNNING, message=f"waits for {running}", queries=drain.query_reports())
    try:
        for target in targets:
            target.wait_until_settled(drain.keep_waiting)
    except DrainEndedError as ended:
        running = _under_way(targets)
        if ended.reason != reasons.DEADLINE_EXCEEDED or not running:
            raise
        message = f"{ended}; still running: {running}. Allow longer than that takes"
        raise DrainEndedError(ended.state, reasons.BATCH_STILL_RUNNING, message, ended.withdrawal) from ended


def _under_way(targets: list[QueryDrain]) -> str:
    return ", ".join(under_way for target in targets if (under_way := target.under_way()))


def _thaw(drain: OngoingDrain) -> None:
    for target in drain.targets:
        try:
            target.thaw()
        except JavaError as error:
            LOG.warning("drain %s: %s could not be given its sources back: %s", drain.uuid, target.label, error)


def _explained(error: BaseException) -> BaseException:
    if isinstance(error, QueryEndedError):
        return DrainEndedError(DrainState.FAILED, reasons.QUERY_FAILED, f"a query ended while it was being drained: {error}")
    if isinstance(error, UnknownCheckpointFormatError):
        return DrainEndedError(DrainState.REJECTED, reasons.UNSUPPORTED_QUERY, str(error))
    if isinstance(error, CallbackError):
        return DrainEndedError(DrainState.FAILED, reasons.CALLBACK_FAILED, f"{error}; the queries run on")
    if isinstance(error, (JavaError, OSError)):
        return DrainEndedError(DrainState.FAILED, reasons.INTERNAL_ERROR, f"the queries run on: {error}")
    return error


def _look_again(drain: OngoingDrain) -> None:
    give_up = time.monotonic() + _STORE_PATIENCE_SECONDS
    while True:
        try:
            text = drain.host.channel.requests.read().entries.get(drain.uuid)
        except StoreError as error:
            drain.keep_waiting()
            if time.monotonic() > give_up:
                raise _StoreAwayError from error
            time.sleep(1)
            continue
        if text is None:
            drain.gone.set()
        else:
            try:
                drain.notification = DrainNotification.from_json(drain.uuid, text)
            except ValueError as error:
                LOG.warning("drain %s: its notification became unreadable; the last readable one counts: %s", drain.uuid, error)
        drain.keep_waiting()
        return


def _wait_for_store(drain: OngoingDrain) -> None:
    while True:
        try:
            drain.host.channel.requests.read()
            return
        except StoreError:
            drain.keep_waiting()
            time.sleep(1)
