"""Executor ids as ranges."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_drain_store.ranges import count_ids, format_ranges


def expanded(ranges: str) -> list[str]:
    found = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        found += [str(number) for number in range(int(first), int(last or first) + 1)]
    return found


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([], ""),
        (["7"], "7"),
        (["3", "1", "2", "2"], "1-3"),
        (["0", "1", "3", "5", "6"], "0-1,3,5-6"),
        (["10", "9", "driver", "a-1"], "9-10,a-1,driver"),
    ],
)
def test_examples(ids: Iterable[str], text: str) -> None:
    assert format_ranges(ids) == text


@given(st.sets(st.integers(0, 300), min_size=1))
def test_every_number_comes_back_once_and_in_order(numbers: set[int]) -> None:
    assert expanded(format_ranges(str(number) for number in numbers)) == [str(number) for number in sorted(numbers)]


@given(st.sets(st.integers(0, 300), min_size=1))
def test_ranges_do_not_touch(numbers: set[int]) -> None:
    parts = [part.split("-") for part in format_ranges(map(str, numbers)).split(",")]
    assert all(int(after[0]) > int(before[-1]) + 1 for before, after in pairwise(parts))


def test_ten_thousand_executors_stay_small() -> None:
    assert format_ranges(str(number) for number in range(1, 10_001) if number != 4712) == "1-4711,4713-10000"


@pytest.mark.parametrize(("ranges", "count"), [("", 0), ("7", 1), ("1-3", 3), ("1-4711,4713-10000", 9999), ("a-b,2", 1), ("5-3", 0)])
def test_executor_ranges(ranges: str, count: int) -> None:
    assert count_ids(ranges) == count
