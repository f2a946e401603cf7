"""A limit of a stream in a batch that has nothing to read: its state goes on only where the optimizer leaves it in the plan."""

from __future__ import annotations

from typing import Any

__all__ = ["keep_empty_limits"]

_EXCLUDED = "spark.sql.optimizer.excludedRules"
_RULES = tuple(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in ("EliminateLimits", "ConvertToLocalRelation", "PropagateEmptyRelation")
)


def keep_empty_limits(session: Any) -> None:
    """Have the optimizer of a JVM session leave limits over empty relations alone, which Spark itself never plans for such a query."""
    conf = session.sessionState().conf()
    before = [rule for rule in conf.getConfString(_EXCLUDED, "").split(",") if rule and rule not in _RULES]
    conf.setConfString(_EXCLUDED, ",".join((*before, *_RULES)))
