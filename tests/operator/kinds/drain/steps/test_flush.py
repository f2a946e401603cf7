"""How far the agent is, in the conditions SourcesStopped and Flushed."""

import pytest
from spark_drain_operator.kinds.drain.steps import flush, stop_sources
from spark_drain_store import DrainState

from tests.operator.kinds.drain.samples import report


@pytest.mark.parametrize(
    ("state", "stopped", "flushed"),
    [
        (DrainState.ACKNOWLEDGED, "Unknown", "False"),
        (DrainState.STOPPING, "False", "False"),
        (DrainState.COMMITTING, "True", "False"),
        (DrainState.FLUSHING, "True", "False"),
        (DrainState.STALLED, "True", "False"),
        (DrainState.REPORTING, "True", "True"),
        (DrainState.DRAINED, "True", "True"),
    ],
)
def test_stopped_and_flushed(state: DrainState, stopped: str, flushed: str) -> None:
    assert stop_sources.decide(state)[0] == stopped
    assert flush.decide(report(state), "Drain")[0] == flushed


def test_a_stop_does_not_claim_to_have_fired_windows() -> None:
    assert "the state is kept" in flush.decide(report(DrainState.DRAINED), "Stop")[2]
