"""Executor ids as compact ranges, so that a report of ten thousand executors stays small."""

from collections.abc import Iterable

__all__ = ["format_ranges"]


def format_ranges(ids: Iterable[str]) -> str:
    """Return ids sorted and joined: ``1-3,7``; ids that are not numbers stand last, as they are."""
    numbers: list[int] = []
    others: list[str] = []
    for item in set(ids):
        if item.isdigit():
            numbers.append(int(item))
        else:
            others.append(item)
    parts: list[str] = []
    start = previous = None
    for number in [*sorted(numbers), None]:
        if previous is not None and number != previous + 1:
            parts.append(str(start) if start == previous else f"{start}-{previous}")
            start = number
        elif previous is None:
            start = number
        previous = number
    return ",".join([*parts, *sorted(others)])
