"""Which files a version of state is made of: a table, and what Spark itself loads."""

from __future__ import annotations

import pytest
from spark_drain_agent.checkpoint.state_files import lacking, lacking_ids, needed_state

UNIQUE = ["0/1/6_a1.zip", "0/1/7_b2.zip", "0/1/8_c3_b2.changelog"]
RIGHT = ["0/0/right/2.delta", "0/0/right/3.delta"]
DESCRIPTIONS = ["0/_metadata/metadata", "0/_metadata/v2/7", "0/_stateSchema/default/0_a", "0/0/_metadata/schema"]
DELTAS = [f"0/1/{version}.delta" for version in range(1, 10)]


@pytest.mark.parametrize(
    ("names", "version", "needed"),
    [
        (DELTAS, 8, DELTAS[:8]),
        ([*DELTAS, "0/1/5.snapshot"], 8, ["0/1/5.snapshot", *DELTAS[5:8]]),
        ([*DELTAS, "0/1/5.snapshot", "0/1/8.snapshot"], 8, ["0/1/8.snapshot"]),
        ([*DELTAS, "0/1/5.snapshot", "0/1/9.snapshot"], 8, ["0/1/5.snapshot", *DELTAS[5:8]]),
        (["0/1/7.zip", "0/1/8.zip", "0/1/9.zip", "0/1/SSTs/000007-a.sst"], 8, ["0/1/8.zip", "0/1/SSTs/000007-a.sst"]),
        (["0/1/6.zip", "0/1/6.changelog", "0/1/7.changelog", "0/1/8.changelog"], 8, ["0/1/6.zip", "0/1/7.changelog", "0/1/8.changelog"]),
        # By name nobody knows which of two attempts was committed.
        ([*UNIQUE, "0/1/9_d.changelog"], 8, UNIQUE),
        # Partitions and the stores of a join each have versions of their own.
        ([*RIGHT, "0/0/left/3.snapshot", "0/0/left/2.delta"], 3, [*RIGHT, "0/0/left/3.snapshot"]),
        (DESCRIPTIONS, 1, DESCRIPTIONS),
        ([], 8, []),
    ],
)
def test_needed(names: list[str], version: int, needed: list[str]) -> None:
    assert needed_state(names, version) == sorted(needed)


@pytest.mark.parametrize(
    ("names", "folders"),
    [
        (["0/0/7.delta", "0/0/8.delta", "0/1/7.delta", "0/1/8.delta"], []),
        (["0/0/7.delta", "0/0/8.delta", "0/1/7.delta", "1/0/left/7.snapshot"], ["0/1", "1/0/left"]),
        (["0/0/7_a.changelog", "0/0/8_a_b.zip", "0/1/7_c.zip", "0/1/SSTs/8.sst"], ["0/1"]),
        (["0/0/1.delta", "0/_metadata/metadata", "0/1/8.delta"], []),
    ],
)
def test_folders_without_a_version(names: list[str], folders: list[str]) -> None:
    assert lacking(names, 8) == folders


@pytest.mark.parametrize(
    ("names", "ids", "missing"),
    [
        (["0/0/8_a.changelog", "0/1/8_b-1.zip"], ["a", "b-1"], []),
        (["0/0/8_c.changelog", "0/1/8_b.zip"], ["a", "b"], ["a"]),
        (["0/0/7_a.changelog"], ["a"], ["a"]),
        (["0/0/8_a_b.zip"], ["b"], []),
        (["0/0/8.delta"], [], []),
    ],
)
def test_what_a_failed_try_has_left_is_not_what_a_commit_names(names: list[str], ids: list[str], missing: list[str]) -> None:
    assert lacking_ids(names, 8, ids) == missing
