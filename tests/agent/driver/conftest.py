"""Input that the drivers of this folder read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.harness import Feed


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    """Return input of two files."""
    feed = Feed(tmp_path / "input")
    feed.add(2)
    return feed
