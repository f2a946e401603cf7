"""Who may work on a checkpoint: the claim of a driver that lives, and of one that is gone."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import cast

import pytest
from spark_drain_agent.claim import CheckpointClaimedError, claim
from spark_drain_agent.spark_internals import SparkInternals

from tests.agent.folder import files_in

SECONDS = 0.5


class _Run:
    def __init__(self, run_id: str) -> None:
        self.application_id = run_id

    def session_conf(self, name: str, default: str) -> str:
        return str(SECONDS)


def run(run_id: str) -> SparkInternals:
    return cast(SparkInternals, _Run(run_id))


def test_a_claim_keeps_changing_and_is_gone_when_released(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    mine = claim(files, run("one"))
    before = files.read("_drain/claim")
    time.sleep(SECONDS)
    assert files.read("_drain/claim") != before
    mine.release()
    assert not files.exists("_drain/claim")
    assert not [thread for thread in threading.enumerate() if thread.name == "spark-drain-claim"]


def test_another_run_is_refused_while_the_first_lives_and_not_after(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    first = claim(files, run("one"))
    with pytest.raises(CheckpointClaimedError, match="run one, which is alive"):
        claim(files, run("two"))
    first.release()
    claim(files, run("two")).release()


@pytest.mark.parametrize(
    "left", [json.dumps({"run": "gone", "beat": 7, "seconds": SECONDS}), json.dumps({"run": "two", "beat": 7, "seconds": 99})]
)
def test_what_a_dead_run_left_is_void_after_a_while_and_ones_own_at_once(tmp_path: Path, left: str) -> None:
    files = files_in(tmp_path)
    files.write("_drain/claim", left)
    begun = time.monotonic()
    claim(files, run("two")).release()
    assert (time.monotonic() - begun >= SECONDS) is ("gone" in left)


def test_a_damaged_claim_is_waited_for_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_drain_agent.claim._DEFAULT_SECONDS", str(SECONDS))
    files = files_in(tmp_path)
    files.write("_drain/claim", "half a cla")
    claim(files, run("two")).release()
