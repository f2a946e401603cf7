"""A digest that cannot be had keeps no query from starting, and equals no other one."""

from __future__ import annotations

from typing import Any

from spark_drain_agent.queries.tracked import TrackedQuery
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
