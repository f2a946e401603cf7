"""Sequences, maps and trees of Catalyst, which may be as deep as a program makes them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

__all__ = ["bottom_up", "items", "pairs", "top_down"]


def items(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a Scala sequence."""
    return (sequence.apply(index) for index in range(sequence.size()))


def pairs(found: Any) -> Iterator[tuple[str, Any]]:
    """Yield key and value of each entry of a Scala map whose keys are texts."""
    return ((str(pair._1()), pair._2()) for pair in items(found.toSeq()))


def top_down(plan: Any) -> Iterator[Any]:
    """Yield a plan, and those below it, each before what is below it."""
    waiting = [plan]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += [*items(each.children())][::-1]


def bottom_up(plan: Any) -> Iterator[tuple[Any, int]]:
    """Yield what is below a plan, its subqueries first, and it itself, each after what is below it, with its depth."""
    open_plans = [(plan, _below(plan))]
    while open_plans:
        each, below = open_plans[-1]
        found = next(below, None)
        if found is not None:
            open_plans.append((found, _below(found)))
        else:
            open_plans.pop()
            yield each, len(open_plans)


def _below(plan: Any) -> Iterator[Any]:
    return chain(items(plan.subqueries()), items(plan.children()))
