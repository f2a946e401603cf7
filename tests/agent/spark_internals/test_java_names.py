"""A class is asked for once, however often it is used; one that a jar brings later is found then."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
from spark_drain_agent.spark_internals.java_names import JavaNames, names_of
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.agent.asked import Asked
from tests.agent.warm import Warm

pytestmark = pytest.mark.spark


def test_a_class_and_its_methods_are_asked_for_once(warm: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    names, asked = JavaNames(warm.session._jvm), Asked(monkeypatch)
    assert [names.java.lang.Integer.parseInt(text) for text in ("7", "8")] == [7, 8]
    assert asked.count() == 3 + 1 + 2
    assert names.java.lang.Integer.parseInt("9") == 9
    assert asked.count() == 1


def test_inner_classes_and_constructors(warm: Warm) -> None:
    names = names_of(warm.session._jvm)
    assert names is SparkInternals(warm.session).jvm
    assert str(names.org.apache.hadoop.fs.Path("file:/a", "b").toString()) == "file:/a/b"
    assert bool(getattr(names.java.util.AbstractMap, "SimpleEntry")("a", "b").getKey() == "a")  # noqa: B009  # as a class of a class


def test_a_class_that_is_not_there_yet_is_asked_for_again(warm: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    names = JavaNames(warm.session._jvm)
    for _ in range(2):
        with pytest.raises((TypeError, Py4JError)):
            names.org.example.LaterJar()
    asked = Asked(monkeypatch)
    _ = names.org.example.LaterJar
    assert asked.count() == 1


def test_the_queries_that_run_are_asked_for_without_an_exception(warm: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of the JVM is translated by some sixty questions."""
    internals, asked = SparkInternals(warm.session), Asked(monkeypatch)
    internals.active_queries()
    assert not [command for command in asked.commands if "TypeUtil" in command]
