"""One session under the agent for all tests of this folder that need no driver of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.warm import Warm, warm_session


@pytest.fixture(scope="package")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of which ``other`` and ``allowed`` are allowed for what drains write."""
    return tmp_path_factory.mktemp("agent")


@pytest.fixture(scope="package")
def session(base: Path) -> Iterator[Warm]:
    nowhere = "hdfs:///drains"  # on no filesystem that this driver can reach, which is in the way of no other one
    with warm_session(base, **{"spark.sparkdrain.allowedPaths": f"{nowhere}, {base}/other, {base}/allowed"}) as warm:
        yield warm


@pytest.fixture
def warm(session: Warm) -> Iterator[Warm]:
    yield session
    session.forget()
