"""Executor ids as compact ranges, so that a report of ten thousand executors stays small."""

from collections.abc import Iterable

__all__ = ["count_ids", "expand_ranges", "format_ranges", "is_executor_id", "parse_ranges"]

_MOST_DIGITS = 18  # fits into 64 bits


def format_ranges(ids: Iterable[str]) -> str:
    """Return ids sorted and joined: ``1-3,7``; ids that are not numbers stand last, as they are."""
    numbers: list[int] = []
    others: list[str] = []
    for item in set(ids):
        if is_executor_id(item):
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


def parse_ranges(ranges: str) -> list[tuple[int, int]]:
    """Return first and last of each range of ``1-4711,4713-10000``; what is no number is left out."""
    pairs = []
    for part in ranges.split(","):
        first, _, last = part.strip().partition("-")
        if is_executor_id(first) and (not last or is_executor_id(last)):
            pairs.append((int(first), int(last or first)))
    return pairs


def is_executor_id(text: str) -> bool:
    """Return whether a text is a number that Spark may have given to an executor."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def expand_ranges(ranges: str) -> list[str]:
    """Return each id of the ranges."""
    return [str(number) for first, last in parse_ranges(ranges) for number in range(first, last + 1)]


def count_ids(ranges: str) -> int:
    """Return how many ids the ranges hold."""
    return sum(max(0, last - first + 1) for first, last in parse_ranges(ranges))
