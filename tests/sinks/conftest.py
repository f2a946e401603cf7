"""The input, and the application that writes it into a table in two incompatible versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.harness import write_events
from tools import table_formats

collect_ignore = [] if "hudi" in table_formats.RELEASES else ["test_hudi.py"]
"""What needs a Spark that this Python does not know."""


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sinks") / "input"
    write_events(folder)
    return folder
