"""Which limits the flush has: a table."""

from __future__ import annotations

import pytest
from spark_drain_agent.planning.limits import Limits


@pytest.mark.parametrize(
    ("limits", "keeps", "obstacle"),
    [
        (Limits(), False, ""),
        (Limits(in_batches=1, in_state=1, without_input=0, kept=1), True, ""),
        (Limits(in_batches=0, in_state=0, without_input=0, kept=1), False, ""),  # its source has had no records
        (Limits(in_batches=1, in_state=1, without_input=1, kept=2), False, ""),  # one of them is above a watermark
        (Limits(in_batches=None, in_state=None, without_input=0, kept=1), True, ""),
        (Limits(in_batches=1, in_state=None, without_input=0, kept=1), True, ""),
        (Limits(in_batches=1, in_state=1, without_input=0, kept=2), True, "write a limit over a limit as one"),
        (Limits(in_batches=0, in_state=1, without_input=0, kept=1), False, "a state that has a gap"),
    ],
)
def test_the_limits_of_the_flush(limits: Limits, keeps: bool, obstacle: str) -> None:
    assert limits.keeps is keeps
    assert (obstacle in limits.obstacle, bool(limits.obstacle)) == (True, bool(obstacle))
