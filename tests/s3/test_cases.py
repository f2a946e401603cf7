"""Cases in which a drain of a checkpoint in S3 has lost records or state, or said `Drained` without a flush: each is exact now.

A to G are moments of a drain at which its driver is killed, or, as G, a store that refuses; `test_killed_anywhere` has all the others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.s3.moments import Moment, Recording, Setting, left_behind, record
from tests.s3.restarts import WAYS
from tests.support.s3_proxy import Fault
from tests.support.s3_server import ONE_BY_ONE, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Recorded = Callable[[Setting], Recording]
Killed = Callable[[Recording, Moment, str], None]

_WHOLE, _COPIED = "COPY|PUT", r"/_drain/[0-9a-f-]{36}/state/"
_AUTO, _WORK_COPY = Setting("Auto", "Reseed"), Setting("WorkCopy", "Reseed")


@pytest.fixture
def killed(s3: S3Server, spark: SparkSession) -> Killed:
    """Return a function that starts again from a moment."""

    def start_again(recording: Recording, moment: Moment, way: str) -> None:
        WAYS[way](left_behind(recording, moment, s3, spark), spark)

    return start_again


@pytest.mark.parametrize("way", [pytest.param("requested", marks=pytest.mark.soak), "removed"])
def test_a_killed_while_the_state_is_moved_to_the_work_copy(way: str, recorded: Recorded, killed: Killed) -> None:
    """The flush ran on a part of the state and failed for ever; without the request the live state was deleted as a whole."""
    recording = recorded(_WORK_COPY)
    third = recording.numbers(_WHOLE, _COPIED)[2]
    killed(recording, recording.after(third), way)


def test_b_killed_while_the_state_is_moved_to_the_archive(recorded: Recorded, killed: Killed) -> None:
    """The archive held a part of the state, the rest was deleted, and nobody was told."""
    recording = recorded(_AUTO)
    third = recording.numbers(_WHOLE, _COPIED)[2]
    killed(recording, recording.after(third), "requested")


def test_c_killed_while_the_metadata_becomes_the_fence(recorded: Recorded, killed: Killed) -> None:
    """There was a moment without metadata, and a drain that found none said `Drained` without a flush."""
    recording = recorded(_AUTO)
    fenced, *_ = recording.numbers("PUT", "/q/metadata$")
    assert not recording.numbers("DELETE|COPY", "/q/metadata$")
    before, after = recording.after(fenced - 1), recording.after(fenced)
    assert b"FENCED" not in (before.objects / "q/metadata").read_bytes()
    assert b"FENCED" in (after.objects / "q/metadata").read_bytes()
    killed(recording, after, "requested")


@pytest.mark.soak
def test_d_killed_while_the_journal_is_replaced(recorded: Recorded, killed: Killed) -> None:
    """There was a moment without a journal, in which the flush that it spoke of was forgotten."""
    recording = recorded(_WORK_COPY)
    _, flush_logged, *_ = recording.numbers("PUT", "/_drain/journal$")
    assert not recording.numbers("DELETE|COPY", "/_drain/journal$")
    killed(recording, recording.after(flush_logged), "requested")


@pytest.mark.soak
def test_e_killed_while_the_seed_takes_the_place_of_the_logs(recorded: Recorded, killed: Killed) -> None:
    """What was half seeded was taken for the whole of it."""
    recording = recorded(Setting("Auto", "Reseed", bucket=ONE_BY_ONE))
    assert not recording.numbers("BULKDELETE", "")
    first = next(number for number in recording.numbers("DELETE", r"/offsets/\d+$"))
    killed(recording, recording.after(first), "requested")


@pytest.mark.soak
def test_f_killed_while_the_state_is_moved_back(recorded: Recorded, killed: Killed) -> None:
    """The live state, whole by then, was deleted, and what was left of the copy put in its place."""
    recording = recorded(Setting("WorkCopy", "Continue", bucket=ONE_BY_ONE))
    third = recording.numbers("DELETE", _COPIED)[2]
    killed(recording, recording.after(third), "requested")


@pytest.mark.soak
def test_g_refused_while_the_state_is_moved(s3: S3Server, spark: SparkSession, killed: Killed, tmp_path: Path) -> None:
    """What was not copied was deleted, and the archive kept a part."""
    s3.proxy.fault = fault = Fault(_WHOLE, _COPIED, nth=3, times=4, status=403)
    recording = record(_AUTO, spark, s3, tmp_path / "refused")
    assert fault.happened
    killed(recording, recording.moments[-1], "requested")


def test_h_refused_when_the_fence_is_written(s3: S3Server, spark: SparkSession, killed: Killed, tmp_path: Path) -> None:
    """No error was seen, and the flush ran without a fence: later, rows were late for a watermark at the end of time."""
    s3.proxy.fault = fault = Fault("PUT", "/q/metadata$", after="_drain/journal$", times=2, status=403)
    recording = record(Setting("Auto", "Reseed", "abortable"), spark, s3, tmp_path / "refused")
    assert fault.happened
    flushed = next(moment for moment in recording.moments if any(pane for pane, _ in moment.parts.values()))
    assert b"FENCED" in (flushed.objects / "q/metadata").read_bytes()
    committed = next(number for number in recording.numbers("PUT", r"/commits/\d+$") if number > flushed.changes)
    for way in ("requested", "plain"):
        killed(recording, recording.after(committed), way)
