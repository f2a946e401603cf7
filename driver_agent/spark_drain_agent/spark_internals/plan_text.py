"""A plan as text, whole.

Spark's own ``treeString()`` leaves out fields beyond ``spark.sql.debug.maxToStringFields``, ends at ``spark.sql.maxPlanStringLength``, and
shows of a Python function only its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from spark_drain_agent.spark_internals.python_code import code_digest

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["python_functions", "source_options", "whole_text"]

_ALL_FIELDS = 2**31 - 1


def whole_text(plan: Any) -> str:
    """Return a logical plan as text; contains ids that differ from run to run."""
    return "\n".join(_lines(plan, 0))


def _lines(plan: Any, depth: int) -> Iterator[str]:
    yield f"{' ' * depth}{plan.simpleString(_ALL_FIELDS)}"
    for within in (plan.subqueries(), plan.children()):
        for each in _items(within):
            yield from _lines(each, depth + 1)


def source_options(plan: Any) -> Iterator[str]:
    """Return what each streaming source of a logical plan was given to read with, which its text does not show."""
    for leaf in _items(plan.collectLeaves()):
        if str(leaf.nodeName()) == "StreamingRelation":
            source = leaf.dataSource()
            options = sorted((str(pair._1()), str(pair._2())) for pair in _items(source.options().toSeq()))
            yield f"{source.userSpecifiedSchema().toString()} {options}"
        elif str(leaf.nodeName()) == "StreamingRelationV2":
            given = leaf.extraOptions().asCaseSensitiveMap()
            yield str(sorted((str(key), str(given[key])) for key in given))


def python_functions(internals: SparkInternals, plan: Any) -> Iterator[str]:
    """Return a digest of the code of each Python function that a logical plan calls, top down."""
    pattern = internals.jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    if plan.containsPattern(pattern):
        for expression in _items(plan.expressions()):
            yield from _functions(internals, expression, pattern)
        for child in _items(plan.children()):
            yield from python_functions(internals, child)


def _functions(internals: SparkInternals, expression: Any, pattern: Any) -> Iterator[str]:
    if not expression.containsPattern(pattern):
        return
    if str(expression.getClass().getSimpleName()).startswith("Python"):
        yield code_digest(bytes(expression.func().command().toArray(internals.jvm.scala.reflect.ClassTag.Byte())))
    for child in _items(expression.children()):
        yield from _functions(internals, child, pattern)


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))
