"""What a drain would do to a query, decided before anything is touched. Pure functions over what was observed."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spark_drain_store import DrainOptions, OperatorReport, reasons

from spark_drain_agent.checkpoint.batch_ids import BatchIds
from spark_drain_agent.planning.limits import NO_LIMITS, Limits
from spark_drain_agent.planning.sinks import batch_ids_of
from spark_drain_agent.spark_internals.operators import LogicalOperator
from spark_drain_agent.spark_internals.redaction import redacted
from spark_drain_agent.spark_internals.state_stores import EMPTY_JOIN_FORMATS, JOIN_FORMAT, STATE_FORMAT

__all__ = [
    "BOUNDED_TRIGGERS",
    "REAL_TIME_TRIGGER",
    "PlanRejectedError",
    "QueryFacts",
    "QueryPlan",
    "check_options",
    "fingerprint",
    "measured",
    "plan_query",
    "residue",
    "side_output_mode",
]

BOUNDED_TRIGGERS = frozenset({"OneTimeTrigger", "AvailableNowTrigger"})
REAL_TIME_TRIGGER = "RealTimeTrigger"
_HDFS, _ROCKSDB = "HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider"
_EMPTY_STATE_TESTED = frozenset({"3.5", "4.0", "4.1", "4.2", "4.3"})
"""Releases with which a test makes the empty state of every operator, with both providers."""
_NO_FILES = ", one that does not write files (Spark's log of them would begin in its middle)"
_UNRECOVERABLE_SINKS = frozenset({"memory"})
_LEFT_BY_CODE = "after every timer has fired"
_LEFT_BY_SPARK = {
    "Aggregate": "whose windows end after the year 9999, which no watermark passes",
    "Join": "whose event time is null or after the year 9999, which no watermark passes",
}


class PlanRejectedError(Exception):
    """The drain cannot be done as asked; nothing was touched.

    Parameters
    ----------
    reason
        CamelCase, from `reasons`.
    message
        Names what stands in the way, and the way out.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(redacted(message))
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class QueryFacts:
    """What planning needs to know about one query.

    Parameters
    ----------
    label
        Names the query in messages.
    sink
        Short name of the sink format.
    sink_class
        Class of the live sink; "" where the query does not run.
    output_mode
        ``Append``, ``Update`` or ``Complete``.
    trigger
        Class name of the trigger.
    operators
        Operators that keep state.
    checkpoint_location
        URI, or None for a temporary folder that Spark chose.
    async_progress
        Whether asynchronous progress tracking is on.
    state_expires
        Whether a transformWithState has state with a time to live.
    spark_version
        Release of Spark.
    state_provider
        Class of the state store provider.
    state_format
        Version of the state's format.
    join_format
        Version of the format in which joins keep their state.
    limits
        How many limits are in which of its plans.
    earlier_sink_remembers
        Whether a version before a drain wrote to a sink that may remember batch ids: a later one may write there again.
    """

    label: str
    sink: str
    sink_class: str
    output_mode: str
    trigger: str
    operators: Sequence[LogicalOperator]
    checkpoint_location: str | None
    async_progress: bool = False
    state_expires: bool = False
    spark_version: str
    state_provider: str
    state_format: str = "1"
    join_format: str = "2"
    limits: Limits = NO_LIMITS
    earlier_sink_remembers: bool = False

    @property
    def ids_may_start_again(self) -> bool:
        """Whether no sink may have seen the ids that come next."""
        return batch_ids_of(self.sink_class).may_start_again and not self.earlier_sink_remembers

    @property
    def sink_and_ids(self) -> str:
        """What the sink does with batch ids, or one before it may do."""
        if self.earlier_sink_remembers:
            return f"writes with {self.sink}, on a checkpoint whose sink before an earlier drain may remember batch ids"
        return f"writes with {self.sink}, which {batch_ids_of(self.sink_class).value}"


@dataclass(frozen=True)
class QueryPlan:
    """What will be done to one query.

    Parameters
    ----------
    checkpoint_policy
        ``Reseed``, ``Continue``, ``Keep``, or "" with mode Stop.
    flushes
        Whether a flush batch is needed.
    flushes_to_sink
        Whether the flush batch goes where the query writes.
    batch_ids_restart
        Whether the next version's batch ids start again at 0.
    batch_ids
        What the sink does with ids that it has seen.
    bounded
        Whether the query ends by itself and is waited for.
    operators
        Each stateful operator with its disposition.
    warnings
        For people.
    """

    checkpoint_policy: str
    flushes: bool
    bounded: bool
    operators: tuple[OperatorReport, ...]
    warnings: tuple[str, ...]
    flushes_to_sink: bool = False
    batch_ids_restart: bool = False
    batch_ids: BatchIds = BatchIds.UNKNOWN

    def first_batch_id(self, newest_commit: int, discarded_ids: int = -1) -> int:
        """Return the id of the next version's first batch, the first one that no sink has seen (`Journal.discarded_ids`)."""
        if self.batch_ids_restart:
            return 0
        follows = newest_commit + (2 if self.flushes_to_sink else 1)
        return max(follows, discarded_ids + 1) if self.checkpoint_policy == "Reseed" else follows


def check_options(options: DrainOptions) -> None:
    """Refuse by name what makes no sense together.

    Raises
    ------
    PlanRejectedError
        With reason ``UnsupportedOption``.
    """
    if options.queries is not None and options.after_drain != "Keep":
        raise PlanRejectedError(
            reasons.UNSUPPORTED_OPTION,
            f"queries {', '.join(map(repr, options.queries))} may only be named with afterDrain 'Keep', not {options.after_drain!r}, since "
            "the others would be stopped without being drained: use that, or leave queries out, which drains all",
        )


def plan_query(options: DrainOptions, facts: QueryFacts) -> QueryPlan:
    """Decide what to do to one query, or that it cannot be done.

    Raises
    ------
    PlanRejectedError
        The query has a shape that cannot be drained, would forget state, or would lose rows with this checkpoint policy.
    """
    bounded = facts.trigger in BOUNDED_TRIGGERS
    _check_shape(options, facts, bounded)
    if options.mode == "Stop":
        return QueryPlan("", flushes=False, bounded=bounded, operators=(), warnings=_next_sink(facts, _NO_FILES))
    if facts.limits.obstacle:
        raise PlanRejectedError(reasons.UNSUPPORTED_QUERY, f"{facts.label} has {facts.limits.obstacle}, or use mode 'Stop'")
    operators = tuple(OperatorReport(name=operator.name, disposition=_disposition(operator, facts)) for operator in facts.operators)
    if options.incomplete_windows == "Discard":
        operators = tuple(
            replace(operator, disposition="discarded") if operator.disposition == "flushed" else operator for operator in operators
        )
    forgotten = sorted({operator.name for operator in operators if operator.disposition == "forgotten"})
    if forgotten and options.state_loss_policy == "Refuse":
        keep_it = ", or use mode 'Stop' to keep it" if facts.checkpoint_location is not None else ""
        raise PlanRejectedError(
            reasons.STATE_WOULD_BE_LOST,
            f"{facts.label} keeps state that an infinite watermark does not emit ({', '.join(forgotten)}), and without which the next "
            f"version may have to start: set stateLossPolicy to 'Accept'{keep_it}",
        )
    policy, restart = _checkpoint_policy(options, facts)
    leaves_gap = policy == "Continue" and bool(facts.operators) and options.incomplete_windows != "Emit"
    if leaves_gap:
        _check_gap(options, facts)
    # With Continue a next batch needs a state of its id, and a flush whose rows go nowhere is what makes an empty one.
    flushes = bool(facts.operators) and (options.incomplete_windows != "Discard" or policy == "Continue")
    if flushes:
        _check_late_input(options, facts)
    return QueryPlan(
        checkpoint_policy=policy,
        flushes=flushes,
        bounded=bounded,
        operators=operators,
        warnings=_warnings(facts, policy, restart=restart, leaves_gap=leaves_gap),
        flushes_to_sink=flushes and options.incomplete_windows == "Emit",
        batch_ids_restart=restart,
        batch_ids=batch_ids_of(facts.sink_class),
    )


def _check_shape(options: DrainOptions, facts: QueryFacts, bounded: bool) -> None:
    unflushable = facts.sink in _UNRECOVERABLE_SINKS and bool(facts.operators)
    if facts.checkpoint_location is None and not bounded and options.checkpoint_policy != "Keep":
        stops = options.mode == "Stop" or unflushable
        way_out = "stop the application directly" if stops else "use checkpoint.policy 'Keep' to emit what is open and end"
        raise PlanRejectedError(
            reasons.UNSUPPORTED_QUERY,
            f"{facts.label} has no checkpointLocation, so no later version could go on where it stops: set one, or {way_out}",
        )
    if facts.trigger == "ContinuousTrigger":
        raise PlanRejectedError(
            reasons.UNSUPPORTED_QUERY,
            f"{facts.label} has a ContinuousTrigger, which has no batches: stop the application directly; only with another trigger and "
            "a new checkpoint it can be drained, since Spark starts no other trigger on a continuous query's checkpoint",
        )
    if facts.trigger == REAL_TIME_TRIGGER and facts.operators:
        raise PlanRejectedError(
            reasons.UNSUPPORTED_QUERY,
            f"{facts.label} keeps state in real-time mode ({', '.join(operator.name for operator in facts.operators)}), which Spark's "
            "releases do not support and no test covers: restart it with another trigger on the same checkpoint, which can be drained, or "
            "stop the application directly",
        )
    if facts.async_progress:
        raise PlanRejectedError(
            reasons.UNSUPPORTED_QUERY,
            f"{facts.label} tracks its progress asynchronously, so its log may lag behind what it has written: to drain it, start it with "
            "its option asyncProgressTrackingCheckpointIntervalMs set to '0', and after two batches at least start it again with "
            "asyncProgressTrackingEnabled set to 'false'",
        )
    if options.mode != "Stop" and unflushable:
        next_sink = "" if facts.output_mode == "Complete" else f", and another sink in the next version{_NO_FILES}"
        way_out = f"use mode 'Stop'{next_sink}" if facts.checkpoint_location is not None else "stop the application directly"
        raise PlanRejectedError(
            reasons.UNSUPPORTED_QUERY,
            f"{facts.label} writes to the {facts.sink} sink, which Spark cannot restart to flush it: {way_out}",
        )


def _disposition(operator: LogicalOperator, facts: QueryFacts) -> str:
    """Return what an infinite watermark does to an operator's state.

    Deduplication memory is evicted without being emitted: duplicates of old records would pass in the next version. State with a time
    to live expires at the end of time, and no code of the user's is called for it.
    """
    if operator.name.startswith("Deduplicate") or not operator.watermarked:
        return "forgotten"
    if operator.name == "Aggregate" and facts.output_mode == "Complete":
        return "forgotten"
    if operator.name.startswith("TransformWithState") and facts.state_expires:
        return "forgotten"
    return "flushed"


def measured(planned: Sequence[OperatorReport], before: Sequence[int], after: Sequence[int]) -> tuple[OperatorReport, ...]:
    """Return the operators with the state rows that Spark counted before and after the flush, as far as it did.

    Only user code decides what its timers leave behind, so that an operator is residual shows after the flush and not in the plan.
    """
    found = []
    for index, operator in enumerate(planned):
        rows_after = after[index] if index < len(after) else operator.rows_after
        left_over = bool(rows_after) and operator.disposition in ("flushed", "discarded")
        found.append(
            replace(
                operator,
                disposition="residual" if left_over else operator.disposition,
                rows_before=before[index] if index < len(before) else operator.rows_before,
                rows_after=rows_after,
            )
        )
    return tuple(found)


def residue(operators: Sequence[OperatorReport], timers_set: Sequence[int], checkpoint_policy: str) -> tuple[str, ...]:
    """Return warnings of rows that outlived the flush although it was to empty them, and of timers that code has set in it.

    Parameters
    ----------
    operators
        As measured.
    timers_set
        How many timers were set in the flush batch, per operator; shorter where that is not known.
    checkpoint_policy
        With ``Continue`` the next version goes on with both.
    """
    goes_on = checkpoint_policy == "Continue"
    where = "the next version finds them" if goes_on else "only the archive keeps them"
    found = []
    for operator, timers in zip(operators, itertools.chain(timers_set, itertools.repeat(0)), strict=False):
        if operator.disposition == "residual":
            code = f"with {timers} timers that were set in the flush batch" if timers else _LEFT_BY_CODE
            found.append(f"{operator.rows_after} state rows of {operator.name} are left {_LEFT_BY_SPARK.get(operator.name, code)}: {where}")
        if goes_on and timers:
            found.append(
                f"{timers} timers of {operator.name} were set in the flush batch: those counted from its clock or watermark are set at the "
                "end of time, and the next version, which goes on with them, never fires them"
            )
    return tuple(found)


def _checkpoint_policy(options: DrainOptions, facts: QueryFacts) -> tuple[str, bool]:
    """Return the policy, and whether batch ids start again with it."""
    asked, sink, obstacle = options.checkpoint_policy, batch_ids_of(facts.sink_class), _obstacle_to_empty_state(facts)
    if asked == "Auto" and not facts.operators:
        return "Continue", False  # without state there is nothing that could be incompatible
    if asked not in ("Auto", "Reseed"):
        return asked, False
    if options.accept_batch_id_restart and (obstacle or facts.earlier_sink_remembers or sink is not BatchIds.REMEMBERED):
        return "Reseed", True
    if not obstacle:
        return "Reseed", False
    if facts.ids_may_start_again:
        return "Reseed", True
    if asked == "Auto":
        return "Continue", False
    raise PlanRejectedError(
        reasons.CHECKPOINT_POLICY_UNSAFE,
        f"{facts.label} {facts.sink_and_ids}, and its batch ids cannot go on after checkpoint.policy 'Reseed', "
        f"since {obstacle}: its first batches could be lost silently. Use 'Auto' or 'Continue', or set checkpoint.acceptBatchIdRestart "
        "to 'true' where the sink takes ids that it has seen",
    )


def _check_gap(options: DrainOptions, facts: QueryFacts) -> None:
    if batch_ids_of(facts.sink_class) is BatchIds.REMEMBERED:
        raise PlanRejectedError(
            reasons.CHECKPOINT_POLICY_UNSAFE,
            f"{facts.label} writes with {facts.sink}, which records every batch, and with incompleteWindows.policy "
            f"{options.incomplete_windows!r} and checkpoint.policy 'Continue' the flush batch would be missing there: nobody could "
            "read the output, or write on, any more: use checkpoint.policy 'Reseed', or incompleteWindows.policy 'Emit'",
        )


def _check_late_input(options: DrainOptions, facts: QueryFacts) -> None:
    """Refuse to hand rows to code that would keep them for a timer: after the flush there is no batch in which one fires.

    Timeouts in event time Spark itself refuses there.
    """
    late = [operator for operator in facts.operators if operator.timers and operator.fed_by and not operator.sets_event_timeouts]
    if late and options.state_loss_policy == "Refuse":
        keep_it = ", or use mode 'Stop', which emits nothing" if facts.checkpoint_location is not None else ""
        if options.incomplete_windows == "Discard" and options.checkpoint_policy == "Continue":
            keep_it += ", or checkpoint.policy 'Reseed', which needs no flush batch"
        raise PlanRejectedError(
            reasons.STATE_WOULD_BE_LOST,
            f"{facts.label} hands what {', '.join(late[0].fed_by)} emits in the flush batch to {late[0].name}, and no batch comes after "
            "that to fire a timer that its code sets there: let that code emit at once where is_drain_pane() is true, and set "
            f"stateLossPolicy to 'Accept'{keep_it}",
        )


def _obstacle_to_empty_state(facts: QueryFacts) -> str:
    """Return why no empty state can be made for a batch with another id than 0, or ""."""
    release, provider = ".".join(facts.spark_version.split(".")[:2]), facts.state_provider.rsplit(".", 1)[-1]
    if provider not in (_HDFS, _ROCKSDB):
        return f"{facts.state_provider} keeps its state in files that this agent does not know"
    if facts.state_format != "1":
        return f"{STATE_FORMAT} is {facts.state_format}, and no empty state can be made in that format"
    if facts.join_format not in EMPTY_JOIN_FORMATS and any(operator.name == "Join" for operator in facts.operators):
        return f"{JOIN_FORMAT} is {facts.join_format}, and the empty state of a join is known up to {EMPTY_JOIN_FORMATS[-1]}"
    return "" if release in _EMPTY_STATE_TESTED else f"an empty state has not been tested with Spark {facts.spark_version}"


def _next_sink(facts: QueryFacts, which: str = "") -> tuple[str, ...]:
    if facts.sink not in _UNRECOVERABLE_SINKS or facts.output_mode == "Complete" or facts.checkpoint_location is None:
        return ()
    return (
        f"{facts.label} writes to the {facts.sink} sink, which Spark starts again from a checkpoint in complete mode only: the next "
        f"version goes on from there with another sink{which}",
    )


def _warnings(facts: QueryFacts, policy: str, *, restart: bool, leaves_gap: bool) -> tuple[str, ...]:
    found = [*_next_sink(facts)]
    if leaves_gap and batch_ids_of(facts.sink_class) is BatchIds.UNKNOWN:
        found.append(
            f"{facts.label} {facts.sink_and_ids}, and is not given the flush batch: where it records every batch, and fails without one, "
            "use incompleteWindows.policy 'Emit' or checkpoint.policy 'Reseed'"
        )
    if policy == "Reseed" and restart:
        memory = "" if facts.ids_may_start_again else "; what it has seen under an id must not make it pass over the next version's rows"
        found.append(
            f"{facts.label} {facts.sink_and_ids}, and its batch ids start again at 0: start the next version under the agent until its "
            f"first batch is committed, since Spark itself would repeat that batch from the beginning of the sources{memory}"
        )
    elif policy == "Reseed" and not restart:
        found.append(
            f"{facts.label} goes on with the next batch id and without state: start the next version under the agent, which makes the "
            "empty state that Spark looks for; a start without it fails"
        )
    if any(operator.name == "Join" for operator in facts.operators):
        found.append(f"{facts.label} joins streams: a pair with one half read before the drain and the other after it is not found")
    leaving = sorted({operator.name for operator in facts.operators if operator.timers})
    if leaving:
        what = (
            "a timer or timeout that it sets in the flush batch, counted from that batch's clock or watermark, is set at the end of time, "
            "and the next version, which goes on with it, never fires it: let it set none where is_drain_pane() is true"
            if policy == "Continue"
            else "what that code does not emit when its timers or timeouts fire, or has set none for, is not emitted, and the next version "
            "starts without it"
        )
        found.append(f"{facts.label} keeps state by code of its own ({', '.join(leaving)}): {what}")
        if policy == "Continue" and facts.state_expires:
            found.append(
                f"{facts.label} has state with a time to live: what code writes to it in the flush batch, whose clock is at 2262-01-01, "
                "does not expire in the next version, which goes on with it: let it write none where is_drain_pane() is true"
            )
    if any(operator.processing_time for operator in facts.operators):
        found.append(
            f"{facts.label} has processing-time timers: its flush batch runs with a clock at 2262-01-01, beyond all of them, and "
            "current_timestamp() and current_date() show that"
        )
    if any(operator.sets_event_timeouts for operator in facts.operators):
        found.append(
            f"{facts.label} has timeouts in event time: where its function sets one in the flush batch, whose watermark is at the end of "
            "time, Spark fails that batch each time: the function must set none where is_drain_pane() is true"
        )
    return tuple(found)


def side_output_mode(facts: QueryFacts) -> str:
    """Return the output mode in which a query's open windows come out whole.

    In update mode every change was emitted when it happened, and an aggregation ends its windows without a word.
    """
    whole = [(operator.name, operator.watermarked) for operator in facts.operators] == [("Aggregate", True)]
    return "Append" if facts.output_mode == "Update" and whole else facts.output_mode


def fingerprint(text: str, spark_version: str) -> str:
    """Return a digest of a plan's text."""
    return hashlib.sha256(f"{spark_version}\n{text}".encode()).hexdigest()[:32]
