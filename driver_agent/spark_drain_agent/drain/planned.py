"""What one drain will do to one query, checked against what this Spark and this query can do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spark_drain_store import DrainOptions, reasons

from spark_drain_agent.checkpoint.lease import obstacle_to_leasing
from spark_drain_agent.checkpoint.state_export import batch_with_state, read_state
from spark_drain_agent.checkpoint.stores import ATOMIC_CONF, OTHERWISE, TRIED_CONF, no_schemes, store_obstacle, without_conditions
from spark_drain_agent.durations import wrong_durations
from spark_drain_agent.planning.plan import PlanRejectedError, QueryPlan, plan_query
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF, FLUSH_VALUES
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.errors import JavaError, in_words
from spark_drain_agent.spark_internals.filesystems import filesystems_of
from spark_drain_agent.spark_internals.jvm_thread import pins_threads
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.sinks import unwritable, unwritable_columns
from spark_drain_agent.spark_internals.sources import sources_without_end
from spark_drain_agent.spark_internals.trial_folder import UnwritableFolderError

__all__ = ["planned", "refuse_confs", "refuse_export", "refuse_side_output", "refuse_unknown_end", "wrong_conf"]


def planned(tracked: TrackedQuery, options: DrainOptions) -> QueryPlan:
    """Decide what will be done, without touching anything; raises `PlanRejectedError`."""
    plan = plan_query(options, tracked.facts())
    if tracked.query is not None and tracked.live.kind != "MicroBatchExecution":
        raise PlanRejectedError(reasons.UNSUPPORTED_QUERY, f"{tracked.label} runs as {tracked.live.kind}, which cannot be drained")
    if tracked.real_time and not pins_threads(tracked.internals.context):
        raise PlanRejectedError(
            reasons.UNSUPPORTED_QUERY,
            f"{tracked.label} runs in real-time mode, in an application without threads of the JVM for those of Python: start it without "
            "PYSPARK_PIN_THREAD=false",
        )
    if not plan.operators and options.mode != "Stop" and any(tracked.state_rows()):
        raise PlanRejectedError(
            reasons.UNSUPPORTED_QUERY,
            f"{tracked.label} keeps state in an operator that this agent does not know: use mode 'Stop' to keep it",
        )
    if options.mode != "Stop" and (found := tracked.operators_found) > (known := len(tracked.operators)):
        raise PlanRejectedError(
            reasons.UNSUPPORTED_QUERY,
            f"{tracked.label} has run no batch since it was started, and its checkpoint has state of another version, with "
            f"{found} stateful operators in place of {known}: start the version that has written it and drain that one, or use mode 'Stop'",
        )
    if options.mode != "Stop":  # which changes nothing in the checkpoint
        _check_store(tracked)
    if options.mode == "CatchUp" and not plan.bounded and tracked.query is not None:
        refuse_unknown_end(tracked, ", ".join(sources_without_end(tracked.live)))
    return plan


def refuse_confs(internals: SparkInternals) -> None:
    """Raise `PlanRejectedError` where a conf of a session cannot be read: beyond the point of no return it would be too late."""
    if wrong := wrong_conf(internals):
        raise PlanRejectedError(reasons.UNSUPPORTED_OPTION, wrong)
    if durations := wrong_durations(internals.session_conf):
        such = "such a value" if len(durations) == 1 else "such values"
        raise PlanRejectedError(reasons.UNSUPPORTED_OPTION, f"{'; '.join(durations)}: start the application with {such}")


def wrong_conf(internals: SparkInternals) -> str:
    """Return what a session's confs have that cannot be read, durations aside, and the way out; "" where there is nothing."""
    flush = internals.session_conf(FLUSH_CONF, FLUSH_VALUES[0])
    if flush not in FLUSH_VALUES:
        return f"{FLUSH_CONF} is {flush!r}, and may be {' or '.join(FLUSH_VALUES)}: start the application with one of them"
    for name in (ATOMIC_CONF, TRIED_CONF):
        if wrong := no_schemes(internals.session_conf(name, "")):
            return (
                f"{name} has {', '.join(map(repr, wrong))}, and is a list of schemes, comma separated, as in 'oss,cosn': start the "
                "application with such a value"
            )
    return ""


def refuse_unknown_end(tracked: TrackedQuery, sources: str) -> None:
    """Raise `PlanRejectedError` where a query that is to catch up has such sources; "" is none."""
    if sources:
        raise PlanRejectedError(
            reasons.UNSUPPORTED_QUERY,
            f"{tracked.label} reads {sources}, which cannot say how far its data goes: use mode 'Drain', which reads no further",
        )


def _check_store(tracked: TrackedQuery) -> None:
    internals, location = tracked.internals, tracked.location
    if location is None:
        return
    conf = internals.session_conf
    filesystems = filesystems_of(internals, location)
    obstacle = store_obstacle(filesystems, conf(ATOMIC_CONF), conf(TRIED_CONF))
    if not obstacle and tracked.checkpoint_files().obstacle_to_replacing:
        obstacle = (
            "Hadoop has no FileContext there, which replaces a file atomically "
            f"({tracked.checkpoint_files().obstacle_to_replacing}): {OTHERWISE}"
        )
    if not obstacle:
        leasing = obstacle_to_leasing(tracked.checkpoint_files())
        obstacle = f"{leasing}; {OTHERWISE}{without_conditions(filesystems)}" if leasing else ""
    if obstacle:
        raise PlanRejectedError(
            reasons.UNSUPPORTED_CHECKPOINT_STORE,
            f"{tracked.label} has its checkpoint at {location}, where no drain is possible: {obstacle}",
        )


def refuse_side_output(tracked: TrackedQuery, options: DrainOptions, plan: QueryPlan) -> None:
    """Raise `PlanRejectedError` where incomplete windows cannot be written beside the sink."""
    if options.side_output_path is not None and plan.flushes:
        with _possible(f"incompleteWindows.sideOutput.path {options.side_output_path!r}"):
            obstacle = unwritable(tracked.internals, tracked.captured, options.side_output_format, options.side_output_path)
        if obstacle:
            raise PlanRejectedError(
                reasons.UNSUPPORTED_OPTION,
                f"incompleteWindows.sideOutput.format {options.side_output_format!r} does not work for {tracked.label}: {obstacle}",
            )


def refuse_export(tracked: TrackedQuery, options: DrainOptions) -> None:
    """Raise `PlanRejectedError` where the state of the newest batch cannot be exported; does nothing where none is committed."""
    if options.state_export_path is not None:
        asked = f"stateExport.path {options.state_export_path!r}"
        with _possible(asked):
            obstacle = _obstacle_to_export(tracked, options.state_export_path)
        if obstacle:
            raise PlanRejectedError(reasons.UNSUPPORTED_OPTION, f"{asked} {obstacle}: leave stateExport out")


@contextmanager
def _possible(asked: str) -> Iterator[None]:
    try:
        yield
    except UnwritableFolderError as error:
        raise PlanRejectedError(reasons.UNSUPPORTED_OPTION, f"{asked} cannot be written: {error}: name another folder") from error


def _obstacle_to_export(tracked: TrackedQuery, path: str) -> str:
    """Return why the state cannot be exported there, or ""; raises `UnwritableFolderError`."""
    internals = tracked.internals
    if int(internals.spark_version.split(".")[0]) < 4:
        return f"needs the state reader of Spark 4.0 or newer, and this is Spark {internals.spark_version}"
    if tracked.location is None or not tracked.facts().operators:
        return ""
    unusable = f"cannot be used for {tracked.label}: "
    if internals.is_encoded(tracked.location):
        return (
            f"{unusable}Spark's state reader does not find a checkpoint whose path has characters that a URI encodes, such as a space, and "
            f"this one is {tracked.location!r}"
        )
    batch_id = batch_with_state(tracked.checkpoint())
    if batch_id is None:
        return ""  # there is nothing to export yet
    try:
        for folder, state in read_state(internals.session, tracked.location, batch_id):
            if obstacle := unwritable_columns(internals, state, "parquet", path):
                return f"{unusable}its state in {folder} cannot be written to Parquet: {obstacle}"
    except (*JavaError, KeyError, ValueError) as error:
        return f"{unusable}Spark's state reader cannot read its state after batch {batch_id}: {in_words(error)}"
    return ""
