"""An exception that is an answer costs one question to the JVM, and not the sixty of PySpark's translation."""

from __future__ import annotations

from contextlib import suppress

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types
from spark_drain_agent.spark_internals.calls import afterwards, attempt
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


@pytest.mark.parametrize(("error", "made"), [(None, True), (ValueError("no"), True), (SystemExit(3), False), (KeyboardInterrupt(), False)])
def test_no_call_follows_one_that_a_handler_may_have_left(error: BaseException | None, made: bool) -> None:
    calls: list[str] = []
    with suppress(ValueError, SystemExit, KeyboardInterrupt), afterwards(lambda: calls.append("made")):
        if error is not None:
            raise error
    assert bool(calls) is made
