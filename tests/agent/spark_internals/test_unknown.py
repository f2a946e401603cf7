"""A digest that cannot be had keeps no query from starting, and equals no other one."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.unknown import or_unknown
from spark_drain_agent.spark_internals.writer import CapturedWriter


class Broken:
    """Access to a Spark in which nothing can be looked at."""

    spark_version = "4.2.0"

    def session_conf(self, _: str, default: str = "") -> str:
        return default

    def analyzed_text(self, _: object) -> str:
        raise RecursionError

    watermarks = analyzed_text

    def sink_text(self, _: object) -> str:
        return ""


class Writer(CapturedWriter):
    """Writes nothing."""

    output_mode = source = query_name = ""


def test_an_unknown_version_is_never_the_same() -> None:
    broken: Any = Broken()
    first, second = (TrackedQuery(broken, Writer(None, {}, None, None), "file:/checkpoint") for _ in range(2))  # type: ignore[arg-type]
    assert first.fingerprint == first.fingerprint != second.fingerprint
    assert len(first.watermarks()) == 1
    assert first.watermarks() != second.watermarks()


class TimeLimitError(Exception):
    """Of the application."""


def test_what_a_signal_handler_raises_meanwhile_reaches_the_application() -> None:
    def handler(*_: object) -> None:
        raise TimeLimitError

    def digest() -> str:
        os.kill(os.getpid(), signal.SIGUSR2)
        return "done"

    before = signal.signal(signal.SIGUSR2, handler)
    try:
        with pytest.raises(TimeLimitError):
            or_unknown("it", digest)
    finally:
        signal.signal(signal.SIGUSR2, before)
