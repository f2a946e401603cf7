"""An exception that is an answer costs one question to the JVM, and not the sixty of PySpark's translation."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types
from spark_drain_agent.spark_internals.calls import attempt
from spark_drain_agent.spark_internals.errors import class_of
from spark_drain_agent.spark_internals.java_names import names_of

from tests.agent.asked import Asked
from tests.agent.warm import Warm

pytestmark = pytest.mark.spark


def test_what_a_method_returns(warm: Warm) -> None:
    names = names_of(warm.session._jvm)
    assert attempt(names.java.lang.Integer.parseInt, "7") == 7
    found = names.java.util.ArrayList()
    assert attempt(found.add, "a") is True
    assert attempt(found.addAll, ["b", "c"]) is True  # py4j makes a Java list for the call
    assert [str(found.get(index)) for index in range(attempt(found.size))] == ["a", "b", "c"]


def test_what_a_method_raises(warm: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    names = names_of(warm.session._jvm)
    parse = names.java.lang.Integer.parseInt
    asked = Asked(monkeypatch)
    with pytest.raises(Py4JJavaError) as raised:
        attempt(parse, "seven")
    assert asked.count() == 1
    assert "seven" in str(raised.value)
    assert class_of(raised.value) == "java.lang.NumberFormatException"
