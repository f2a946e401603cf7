"""Which query reads what another one writes, and that there is an order to drain them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import pytest
from spark_drain_agent.planning.query_graph import CycleError, UnknownDependencyError, check_order, declared_dependencies, dependencies
from spark_drain_agent.spark_internals.places import Place

NAMES = {"a": "file:/a", "b": "file:/b", "c": "file:/c"}


def topic(name: str, *servers: str, pattern: bool = False) -> Place:
    return Place("topic", name, frozenset(servers), pattern)


@pytest.mark.parametrize(
    ("written", "read", "fed"),
    [
        (Place("path", "s3a://b/out"), Place("path", "s3a://b/out"), True),
        (Place("path", "s3a://b/out"), Place("path", "s3a://b/out/"), True),
        (Place("path", "s3a://b/out"), Place("path", "s3a://b/out/day=1"), True),
        (Place("path", "s3a://b/out"), Place("path", "s3a://b/out/*.json"), True),
        (Place("path", "s3a://b/out"), Place("path", "s3a://b/*"), True),
        (Place("path", "s3a://b/out"), Place("path", "s3a://b/{in,out}"), True),
        (Place("path", "s3a://b/out"), Place("path", "s3a://b/{in,{o,p}ut}"), True),
        (Place("path", "s3a://b/out"), Place("path", "s3a://b/{in,on}"), False),
        (Place("path", "s3a://b/out"), Place("path", "s3a://b"), False),
        (Place("path", "s3a://b/out"), Place("path", "s3a://b/outer"), False),
        (Place("path", "s3a://b/out"), Place("table", "s3a://b/out"), False),
        (Place("table", "cat.db.T"), Place("table", "cat.db.t"), True),
        (Place("table", "cat.db.t"), Place("table", "cat.other.t"), False),
        (topic("t", "k1:9092", "k2:9092"), topic("t", "k2:9092"), True),
        (topic("t", "k1:9092"), topic("t", "other:9092"), False),
        (topic("t", "k:1"), topic("u", "k:1"), False),
        (topic("t1", "k:1"), topic("t[0-9]", "k:1", pattern=True), True),
        (topic("t10", "k:1"), topic("t[0-9]", "k:1", pattern=True), False),
    ],
    ids=lambda value: value.name if isinstance(value, Place) else "",
)
def test_what_is_written_is_read(written: Place, read: Place, fed: bool) -> None:
    assert written.is_read_as(read) is fed


def test_dependencies_are_found_in_places_unless_the_conf_says_them() -> None:
    places = {
        "file:/a": ([Place("path", "x")], []),
        "file:/b": ([Place("path", "y")], [Place("path", "x"), Place("path", "z")]),
        "file:/c": ([], [Place("path", "x"), Place("path", "y")]),
    }

    def unreadable() -> NoReturn:
        raise AssertionError("the conf says all there is to know")

    assert dependencies(" ", NAMES, lambda: places) == {"file:/a": (), "file:/b": ("file:/a",), "file:/c": ("file:/a", "file:/b")}
    assert dependencies("none", NAMES, unreadable) == {"file:/a": (), "file:/b": (), "file:/c": ()}
    assert dependencies("b > a, c>a", NAMES, unreadable) == {"file:/a": ("file:/b", "file:/c"), "file:/b": (), "file:/c": ()}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("a>", "has 'a>' in it"),
        ("a", "write WRITER>READER pairs"),
        (">b", "has '>b'"),
        ("a>b,", "has ''"),
        ("a>b>c", "has 'a>b>c' in it"),
        ("a>d", "names query 'd'"),
    ],
)
def test_a_conf_that_cannot_be_followed_is_named(setting: str, words: str) -> None:
    with pytest.raises(UnknownDependencyError, match=r"spark\.sparkdrain\.queryDependencies") as refused:
        declared_dependencies(setting, NAMES)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "depends_on", [{}, {"a": ()}, {"c": ("b",), "b": ("a",), "a": ()}, {"d": ("b", "c"), "b": ("a",), "c": ("a",), "a": ()}]
)
def test_an_order(depends_on: Mapping[str, tuple[str, ...]]) -> None:
    check_order(depends_on)


@pytest.mark.parametrize(
    ("depends_on", "cycle"),
    [
        ({"a": ("a",)}, ("a", "a")),
        ({"a": ("b",), "b": ("a",)}, ("b", "a", "b")),
        ({"a": (), "b": ("a", "d"), "c": ("b",), "d": ("c",), "e": ("d",)}, ("d", "b", "c", "d")),
    ],
)
def test_a_cycle_is_shown_as_the_data_flows(depends_on: Mapping[str, tuple[str, ...]], cycle: tuple[str, ...]) -> None:
    with pytest.raises(CycleError) as refused:
        check_order(depends_on)
    assert set(refused.value.keys) == set(cycle)
    assert refused.value.keys[0] == refused.value.keys[-1]
    assert all(writer in depends_on[reader] for writer, reader in zip(refused.value.keys, refused.value.keys[1:], strict=False))
