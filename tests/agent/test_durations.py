"""Confs that are durations: how they may be written, their bounds, and what becomes of a value that is wrong."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import pytest
from spark_drain_agent.durations import DURATIONS, LEASE, START, DurationConf, DurationError

from tests.workshop.repository import ROOT

PAGE = ROOT / "docs/unmodified-application.md"


def session(value: str) -> Callable[[str, str], str]:
    return lambda _name, _default: value


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("", 15),
        ("20", 20),
        ("2.5", 2.5),
        ("15s", 15),
        ("1500ms", 1.5),
        ("1m", 60),
        ("2 min", 120),
        (" 10 Seconds ", 10),
        ("0.1 hours", 360),
        ("600", 600),
        ("1", 1),
    ],
)
def test_seconds_with_a_unit_or_without(value: str, seconds: float) -> None:
    assert LEASE.read(session(value)) == pytest.approx(seconds)


def test_an_hour_is_a_duration() -> None:
    assert START.read(session("1h")) == 3600


@pytest.mark.parametrize(
    "value", ["soon", "15 x", "s", "nan", "inf", "-1", "-15s", "0", "999ms", "601", "11 min", "1e12", "9" * 400, "1,5", "."]
)
def test_what_is_no_duration_or_out_of_bounds_is_refused_by_name(value: str) -> None:
    with pytest.raises(DurationError) as refused:
        LEASE.read(session(value))
    assert f"spark.sparkdrain.leaseSeconds is {value!r}, and may be 1 to 600 s: " in str(refused.value)
    assert "'15s', '1500ms', '2 min' or '1h'; the default is 15 s" in str(refused.value)


def test_where_nothing_is_asked_the_default_is_used_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "spark_drain"):
        for _ in range(3):
            assert LEASE.read_or_default(session("once upon a time")) == LEASE.default
    (warning,) = caplog.messages
    assert "spark.sparkdrain.leaseSeconds is 'once upon a time', and may be 1 to 600 s" in warning


@pytest.mark.parametrize("conf", DURATIONS, ids=lambda conf: conf.name)
def test_the_page_has_default_and_bounds(conf: DurationConf) -> None:
    (row,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{conf.name}` |")]
    assert f"| {conf.least:g} to {conf.most:g} s | {conf.default:g} s |" in row


def test_the_page_has_every_conf() -> None:
    source = "".join(path.read_text() for path in (ROOT / "driver_agent").rglob("*.py"))
    properties_of_the_agent = {f"spark.sparkdrain.{name}" for name in ("pane", "generation", "lateStart")}
    named = set(re.findall(r"\"(spark\.sparkdrain\.[\w.]+)\"", source)) - properties_of_the_agent
    assert named == set(re.findall(r"^\| `(spark\.sparkdrain\.[\w.]+)` \|", PAGE.read_text(), re.MULTILINE))
