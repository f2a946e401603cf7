"""What PySpark's documentation says of streaming queries, asked with the agent and without: no drain, no difference."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.agent.harness import Drains, Driver

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

PATIENT = {"spark.python.authenticate.socketTimeout": "120s"}  # a busy machine takes its time to start a Python worker
OF_THE_CASE = ("NameError", "TypeError", "AttributeError", "AssertionError", "KeyError")
SAMPLE = (
    "start_and_stop",
    "await_with_a_timeout",
    "await_less_than_a_millisecond",
    "await_a_mock",
    "await_with_a_clock_that_stands_still",
    "await_any_and_reset",
    "failure_reaches_who_waits",
    "names_are_unique",
    "arguments_of_start",
    "arguments_that_start_does_not_take",
    "a_checkpoint_that_cannot_be",
    "foreach_with_a_writer",
    "foreach_batch",
    "foreach_batch_that_fails_then_goes_on",
    "listener",
)


def outcomes(base: Path, cases: tuple[str, ...], *, agent: bool) -> dict[str, Any]:
    base.mkdir()
    driver = Driver("streaming_api.py", base, *cases, store=Drains(base / "store") if agent else None, confs=PATIENT)
    try:
        assert driver.wait(1000) == 0, driver.tail()
        found: dict[str, Any] = json.loads((base / "outcomes.json").read_text())
        assert agent == ("drain agent attached" in driver.log)
        assert agent == ("cannot track: " in driver.log)
        assert not re.search(r"cannot track: .*\n(: |\s+at )", driver.log), "a stack trace"
        return found
    finally:
        driver.close()


@pytest.mark.parametrize("cases", [pytest.param(SAMPLE, id="sample"), pytest.param((), id="all", marks=pytest.mark.soak)])
def test_as_without_the_agent(tmp_path: Path, cases: tuple[str, ...]) -> None:
    plain = outcomes(tmp_path / "plain", cases, agent=False)
    assert len(plain) >= len(SAMPLE)
    broken = [name for name, outcome in plain.items() if outcome and outcome[0] in OF_THE_CASE]
    assert not broken, "the case itself fails"
    assert outcomes(tmp_path / "agent", cases, agent=True) == plain
