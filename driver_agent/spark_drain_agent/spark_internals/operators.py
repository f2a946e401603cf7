"""The operators of a streaming plan that keep state, and whether the watermark takes that state away.

They are read off the plan as Spark's optimizer leaves it, because that is what Spark decides by: a filter after a join becomes part of the
join's condition there, and a distinct an aggregation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types

from spark_drain_agent.spark_internals.errors import UnsupportedSparkError
from spark_drain_agent.spark_internals.plan_text import PlanText
from spark_drain_agent.spark_internals.trees import items, top_down
from spark_drain_agent.spark_internals.unknown import unlike_any_other

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["LIMITS", "LogicalOperator", "operators_of", "watermarks_of"]

_WATERMARK_KEY = "spark.watermarkDelayMs"
_WATERMARK = "EventTimeWatermark"
LIMITS = ("GlobalLimit", "Limit")
"""Names of a limit's node."""
_ANY_WATERMARK_MS = 253_402_300_799_000
_JOIN_HELPERS = (
    "org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper",
    "org.apache.spark.sql.execution.streaming.StreamingSymmetricHashJoinHelper",
)


@dataclass(frozen=True)
class LogicalOperator:
    """A node of a streaming query's plan that may keep state.

    Parameters
    ----------
    name
        Catalyst's node name, such as ``Aggregate``.
    watermarked
        Whether an infinite watermark evicts its state: all of it, on both sides of a join.
    timers
        Whether user code can set timers or timeouts.
    processing_time
        Whether those timers follow the clock, so that the query plans batch after batch without any data.
    needs_input
        Whether Spark's optimizer takes it out of the plan of a batch without input: a limit with no watermark below it, which hides from
        the optimizer that there are no rows.
    emits_at_the_end
        Whether an infinite watermark makes it emit rows: an inner join has emitted each pair before.
    fed_by
        Names of the operators that then hand rows to its code.
    """

    name: str
    watermarked: bool
    timers: bool = False
    processing_time: bool = False
    needs_input: bool = False
    emits_at_the_end: bool = False
    fed_by: tuple[str, ...] = ()

    @property
    def sets_event_timeouts(self) -> bool:
        """Whether its function may set timeouts in event time, which Spark refuses behind the watermark; timers may be anywhere."""
        return self.name.startswith("FlatMapGroups") and self.timers and not self.processing_time


def operators_of(internals: SparkInternals, plan: Any, output_mode: str) -> Iterator[LogicalOperator]:
    """Return the operators of an optimized plan that keep state between batches, top down.

    Parameters
    ----------
    internals, plan
        The plan, and access to Spark.
    output_mode
        ``Append``, ``Update`` or ``Complete``: with ``Complete`` a limit above an aggregation has no state (StreamingGlobalLimitStrategy).
    """
    for each in top_down(plan):
        children = [*items(each.children())]
        if each.isStreaming() and children and children[0].isStreaming():
            found = _stateful(internals, str(each.nodeName()), each, children)
            if found is not None and not (found.name in LIMITS and output_mode != "Append" and _has(each, "Aggregate")):
                if found.timers:
                    below = [operator for child in children for operator in operators_of(internals, child, output_mode)]
                    found = replace(found, fed_by=tuple(sorted({operator.name for operator in below if operator.emits_at_the_end})))
                yield found


def watermarks_of(internals: SparkInternals, plan: Any) -> Iterator[str]:
    """Return column and delay of each watermark in an analyzed plan, top down, each with the plan that makes the column.

    Where code or a table takes part in that, it equals no other one: what is read there may be another file, variable, library or row
    than before.
    """
    for each in top_down(plan):
        if str(each.nodeName()) == _WATERMARK:
            text = PlanText(internals)
            made = text.of(each.child())
            column = f"{text.column(each.eventTime())} {each.delay().toString()}"
            yield f"{column}\n{made}" if text.self_contained else unlike_any_other()


def _stateful(internals: SparkInternals, name: str, plan: Any, children: list[Any]) -> LogicalOperator | None:
    if name == "Aggregate":
        watermarked = _watermarked(plan.groupingExpressions())
        return LogicalOperator(name, watermarked, emits_at_the_end=watermarked)
    if name in ("Deduplicate", "DeduplicateWithinWatermark"):
        return LogicalOperator(name, _watermarked(plan.keys()))
    if name == "Join" and children[1].isStreaming():
        return LogicalOperator(name, _both_sides_expire(internals, plan), emits_at_the_end="Outer" in str(plan.joinType().toString()))
    if name.startswith("FlatMapGroups") and name.endswith("WithState"):  # without state: applyInPandas, applyInArrow
        timeout = str(plan.timeout().toString())
        timers = timeout != "NoTimeout"
        return _with_code(name, timers=timers, processing_time=timeout.startswith("ProcessingTime"))
    if name.startswith("TransformWithState"):
        mode = str(plan.timeMode().toString())
        timers = mode not in ("None", "NoTime")
        return _with_code(name, timers=timers, processing_time=mode.startswith("ProcessingTime"))
    if name in LIMITS:
        return LogicalOperator(name, watermarked=False, needs_input=not _has(plan, _WATERMARK))
    return None


def _with_code(name: str, *, timers: bool, processing_time: bool) -> LogicalOperator:
    return LogicalOperator(name, watermarked=timers, timers=timers, processing_time=processing_time, emits_at_the_end=timers)


def _has(plan: Any, name: str) -> bool:
    return any(str(each.nodeName()) == name for each in top_down(plan))


def _watermarked(expressions: Any) -> bool:
    for index in range(expressions.size()):
        expression = expressions.apply(index)
        try:
            if expression.metadata().contains(_WATERMARK_KEY):
                return True
        except Py4JError:  # not a named expression: it cannot carry a watermark
            continue
    return False


def _both_sides_expire(internals: SparkInternals, join: Any) -> bool:
    """Return whether Spark finds a predicate by which a watermark evicts the state of either side.

    It does for a watermark among the columns of an equality, and for a side whose time the condition bounds by the other side's.
    """
    matched = internals.jvm.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys.unapply(join)
    if not matched.isDefined():  # Spark has no streaming join without an equality; it refuses the query
        return False
    keys = matched.get()
    helper = internals.first_class(_JOIN_HELPERS)
    some = internals.jvm.scala.Some(_ANY_WATERMARK_MS)
    first = internals.session_conf("spark.sql.streaming.statefulOperator.allowMultiple", "true") != "true"
    found = (join.left().output(), join.right().output(), keys._2(), keys._3(), keys._4())
    try:
        predicates = helper.getStateWatermarkPredicates(*found, some, first)
    except Py4JError:  # from Spark 4.2 on there is a second watermark, of the batch before
        try:
            predicates = helper.getStateWatermarkPredicates(*found, some, some, first)
        except Py4JError as error:
            raise UnsupportedSparkError(
                f"whether a join's state expires on Spark {internals.spark_version} is not known: {error}"
            ) from error
    return bool(predicates.left().isDefined() and predicates.right().isDefined())
