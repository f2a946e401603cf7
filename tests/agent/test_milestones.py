"""What the agent logs."""

from __future__ import annotations

import logging

import pytest
from spark_drain_agent.milestones import LOG


def test_a_message_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Who requests a drain chooses names and folders that the agent says in its answer."""
    forged = "x\n2026-01-01 00:00:00,000 INFO spark_drain: drained \x1b[31m\u2028"
    with caplog.at_level(logging.INFO, LOG.name):
        LOG.info("drain: %s", forged)
        LOG.info("done: %s", "plain")
    assert caplog.messages == [r"drain: x\n2026-01-01 00:00:00,000 INFO spark_drain: drained \x1b[31m\u2028", "done: plain"]
