"""What Spark, or a Python set, makes anew in the expressions of a plan at each start: random seeds, and the order of what is in a list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from spark_drain_agent.spark_internals.trees import items

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["Unsteady", "without_seeds"]

_BETWEEN = "\x00"
_ID = re.compile(r"#\d+L?")
_SEED = re.compile(r"(?<=\brand\()-?\d+(?=\))|(?<=\brandn\()-?\d+(?=\))")
_AT_THE_END = {"CollectMetrics": re.compile(r"(?<=\]), \d+$"), "Sample": re.compile(r"(?<=, )-?\d+(, \w+)?$")}
"""By plan: how many DataFrames there were before, and a seed, behind which Spark 4.2 has how rows are chosen."""


def without_seeds(text: str) -> str:
    """Return a text without the seeds in names of columns that Spark has made of ``rand()`` and ``randn()``."""
    return _SEED.sub("", text)


class Unsteady:
    """Makes texts and leaves of plans equal for two starts.

    Parameters
    ----------
    internals
        Access to Spark.
    """

    def __init__(self, internals: SparkInternals) -> None:
        patterns = internals.jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        self._list, self._seed = patterns.IN(), patterns.EXPRESSION_WITH_RANDOM_SEED()
        self._seeded = internals.jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.expressions.ExpressionWithRandomSeed")

    def steady(self, plan: Any, line: str) -> str:
        """Return the line of a plan, in which seeds are left out and lists are sorted."""
        if (end := _AT_THE_END.get(str(plan.nodeName()))) is not None:
            line = end.sub("", line)
        if self._is_in(plan):
            for expression in items(plan.expressions()):
                for before, after in self._replaced(expression):
                    line = line.replace(before, after)
        return without_seeds(line)

    def leaves(self, expression: Any) -> Iterator[Any]:
        """Yield the leaves of an expression, those of a list in the order of their texts, and no seeds."""
        waiting = [expression]
        while waiting:
            each = waiting.pop()
            if not self._is_in(each):
                yield from items(each.collectLeaves())
            elif _is_list(each):
                waiting += [*sorted(items(each.list()), key=lambda item: _ID.sub("", str(item)), reverse=True), each.value()]
            elif self._seeded.isInstance(each):
                seed = each.seedExpression()
                waiting += [child for child in [*items(each.children())][::-1] if not child.equals(seed)]
            else:
                waiting += [*items(each.children())][::-1]

    def _replaced(self, expression: Any) -> Iterator[tuple[str, str]]:
        waiting = [expression]
        while waiting:
            each = waiting.pop()
            if not self._is_in(each):
                continue
            if _is_list(each):
                texts = sorted(_ID.sub("", text) for text in str(each.list().mkString(_BETWEEN)).split(_BETWEEN))
                yield str(each.toString()), f"{each.value().toString()} IN {texts}"
            elif self._seeded.isInstance(each):
                yield str(each.toString()), str(each.withNewSeed(0).toString())
            waiting += items(each.children())

    def _is_in(self, plan_or_expression: Any) -> bool:
        return any(plan_or_expression.containsPattern(pattern) for pattern in (self._list, self._seed))


def _is_list(expression: Any) -> bool:
    return str(expression.getClass().getSimpleName()) == "In"
