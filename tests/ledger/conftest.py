"""The input and the warm JVM that all crash tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.harness import Restarter, write_events


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ledger") / "input"
    write_events(folder)
    return folder


@pytest.fixture(scope="session")
def restarter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarter]:
    restarter = Restarter(tmp_path_factory.mktemp("restarter") / "log")
    yield restarter
    restarter.close()
