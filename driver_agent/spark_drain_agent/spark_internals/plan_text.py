"""A logical plan as text, whole, and equal for equal plans of two runs.

Spark's own ``treeString()`` leaves out fields beyond ``spark.sql.debug.maxToStringFields``, ends at ``spark.sql.maxPlanStringLength``,
shows of a Python function only its name, and does not show what sources were given to read with. Its ids and hashes differ from run to
run, and cannot be told from the text of a literal; so they are cut from its lines, and literals and columns follow each line exactly.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from spark_drain_agent.spark_internals.python_function import function_digest
from spark_drain_agent.spark_internals.source_options import options_of
from spark_drain_agent.spark_internals.trees import bottom_up, items
from spark_drain_agent.spark_internals.unsteady import Unsteady, without_seeds

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["PlanText"]

_ALL_FIELDS = 2**31 - 1
_BETWEEN = "\x00"
_OF_ONE_RUN = re.compile(
    r"(?<=EventTimeWatermark )[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=[^\s'\"])#\d+L?|(?<=[\w$/])@[0-9a-f]+"
    r"|(?<=^CTERelationDef )\d+|(?<=^CTERelationRef )\d+|(?<=^~CTERelationDef )\d+|(?<=^~CTERelationRef )\d+"
)
_LAMBDA = re.compile(r"(lambda \w+?)_\d+(?=#\d)")
_COLUMN = re.compile(r"#(\d+)(?=L?(?:-T\d+ms)?$)")
_HASH = re.compile("@[0-9a-f]+")
_CALLS_CODE = re.compile(r"\bHive\w*UDF\b|\b(?:try_)?reflect\(|\bjava_method\(|\bapplyfunctionexpression\(")
_RUNS_CODE = re.compile("Map|TypedFilter|AppendColumns|CoGroup|ScriptTransformation|TransformWithState")
"""Nodes that call functions which the application hands over, or programs."""
_KNOWN_LEAVES = frozenset({"StreamingRelation", "StreamingRelationV2", "LocalRelation", "OneRowRelation", "Range", "CTERelationRef"})
"""Streams, and what is in the plan itself; any other leaf is a table, whose rows are not."""
_PYTHON_SOURCES = "org.apache.spark.sql.execution.datasources.v2.python."
_REFERENCES = frozenset({"AttributeReference", "NamedLambdaVariable", "OuterReference", "OuterScopeReference"})


class PlanText:
    """The text of a plan; its columns are numbered in the order in which they are made, since one name may mean several.

    Parameters
    ----------
    internals
        Access to Spark.

    Attributes
    ----------
    self_contained
        Whether all that the plans so far compute from their streams is in their text: no table takes part, and no code of the
        application's or of a library of its.
    """

    def __init__(self, internals: SparkInternals) -> None:
        self._internals = internals
        self.self_contained = True
        self._numbers: dict[int, int] = {}
        self._columns: set[str] = set()
        patterns = internals.jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        self._with_functions = (patterns.PYTHON_UDF(), patterns.GENERATOR())
        self._java_function = patterns.SCALA_UDF()
        self._unsteady = Unsteady(internals)

    def of(self, plan: Any) -> str:
        """Return the text of a plan, its subqueries among it."""
        text = "\n".join(line for each, depth in bottom_up(plan) for line in self._lines(each, depth))
        if plan.containsPattern(self._java_function) or _CALLS_CODE.search(text):
            self.self_contained = False
        return text

    def column(self, attribute: Any) -> str:
        """Return which column of the plans so far an attribute is."""
        return f"{attribute.name()} {self._number(int(attribute.exprId().id()))}"

    def _lines(self, plan: Any, depth: int) -> Iterator[str]:
        name = str(plan.nodeName())
        yield f"{' ' * depth}{self._line(name, plan)}"
        output = _texts(plan.output())
        self._columns |= {*output}
        yield str([self._column(column) for column in output])
        yield from _given(self._internals, name, plan)
        if _RUNS_CODE.search(name) or (name not in _KNOWN_LEAVES and plan.children().isEmpty()):
            self.self_contained = False
        expressions = plan.expressions()
        with_functions = self._calls_functions(plan)
        for index, text in enumerate(_texts(expressions)):
            if text in self._columns:  # as most are, in a wide plan: each call into the JVM takes its time
                yield self._column(text)
                continue
            expression = expressions.apply(index)
            yield str([self._leaf(leaf) for leaf in self._unsteady.leaves(expression)])
            if with_functions:
                yield from self._functions(expression)

    def _line(self, name: str, plan: Any) -> str:
        if name == "StreamingRelation":  # the options of streaming sources come separately
            return f"{name} {plan.sourceName()}"
        if name == "StreamingRelationV2":
            if str(plan.table().getClass().getName()).startswith(_PYTHON_SOURCES):
                self.self_contained = False
            return f"{name} {plan.sourceName()} {plan.table().name()} {plan.identifier().toString()}"
        line = self._unsteady.steady(plan, str(plan.simpleString(_ALL_FIELDS)))
        return _OF_ONE_RUN.sub("", _LAMBDA.sub(r"\1", line))

    def _leaf(self, leaf: Any) -> str | int:
        name = str(leaf.nodeName())
        if name == "Literal":
            text = str(leaf.sql())
            return text if "'" in text else _HASH.sub("", text)
        return self._number(int(leaf.exprId().id())) if name in _REFERENCES else name

    def _column(self, text: str) -> str:
        return _COLUMN.sub(lambda found: f" {self._number(int(found[1]))}", without_seeds(text))

    def _number(self, expression_id: int) -> int:
        return self._numbers.setdefault(expression_id, len(self._numbers))

    def _functions(self, expression: Any) -> Iterator[str]:
        """Yield a digest of the code of each Python function that an expression calls."""
        waiting = [expression]
        while waiting:
            each = waiting.pop()
            if not self._calls_functions(each):
                continue
            if str(each.getClass().getSimpleName()).startswith("Python"):
                self.self_contained = False
                yield function_digest(self._internals, each.func())
            waiting += [*items(each.children())][::-1]

    def _calls_functions(self, plan_or_expression: Any) -> bool:
        return any(plan_or_expression.containsPattern(pattern) for pattern in self._with_functions)


def _given(internals: SparkInternals, name: str, leaf: Any) -> Iterator[str]:
    """Yield what a source of a plan, of this node's name, was given to read with, or the rows that a plan carries."""
    if name == "LocalRelation":
        yield hashlib.sha256(str(leaf.data().mkString(_BETWEEN)).encode()).hexdigest()
    else:
        yield from options_of(internals, name, leaf)


def _texts(expressions: Any) -> list[str]:
    """Return expressions as texts, all in one call; without any text where one contains what separates them."""
    count = int(expressions.size())
    texts = str(expressions.mkString(_BETWEEN)).split(_BETWEEN) if count else []
    return texts if len(texts) == count else [""] * count
