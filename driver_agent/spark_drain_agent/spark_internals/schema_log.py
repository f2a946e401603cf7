"""Delta's log of the schemas that a streaming source has read with (``schemaTrackingLocation``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_drain_agent.spark_internals.trees import bottom_up, items, pairs

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["read_in"]

_OPTIONS = ("schematrackinglocation", "schemalocation")


def read_in(internals: SparkInternals, plan: Any, session: Any) -> Any:
    """Return a plan of which the sources with such a log are made in a JVM session: Delta asks its confs what it checks there.

    Spark makes a source of the older kind in the session that the application has read with (`DataSource.createSource`).
    """
    if not any(map(_has_log, items(plan.collectLeaves()))):
        return plan
    made: dict[int, list[tuple[Any, bool]]] = {}
    for each, depth in bottom_up(plan):
        count = int(each.children().size())
        below = made.pop(depth + 1, [])
        below = below[len(below) - count :]  # before them come those of its subqueries
        if any(anew for _, anew in below):
            found = (each.withNewChildren(internals.scala_seq([child for child, _ in below])), True)
        elif _has_log(each):
            found = (_copy(each, _copy(each.dataSource(), session)), True)
        else:
            found = (each, False)
        made.setdefault(depth, []).append(found)
    return made[0][0][0]


def _has_log(leaf: Any) -> bool:
    return str(leaf.nodeName()) == "StreamingRelation" and any(name.lower() in _OPTIONS for name, _ in pairs(leaf.dataSource().options()))


def _copy(case_class: Any, first: Any) -> Any:
    """Return a copy of an object of a Scala case class with another first field."""
    return case_class.copy(first, *(case_class.productElement(index) for index in range(1, case_class.productArity())))
