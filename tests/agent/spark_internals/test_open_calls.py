"""What follows a call into the JVM that a signal handler may have left."""

from __future__ import annotations

from contextlib import suppress

import pytest
from spark_drain_agent.spark_internals.open_calls import afterwards


@pytest.mark.parametrize(("error", "made"), [(None, True), (ValueError("no"), True), (SystemExit(3), False), (KeyboardInterrupt(), False)])
def test_no_call_follows_one_that_a_handler_may_have_left(error: BaseException | None, made: bool) -> None:
    calls: list[str] = []
    with suppress(ValueError, SystemExit, KeyboardInterrupt), afterwards(lambda: calls.append("made")):
        if error is not None:
            raise error
    assert bool(calls) is made
