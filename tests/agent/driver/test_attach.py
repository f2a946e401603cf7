"""What is said where a program cannot have what it would have without the agent."""

from pathlib import Path

import pytest
from spark_drain_agent.driver.attach import pyspark_hidden


def test_another_pyspark_that_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pyspark_hidden() == ""
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert pyspark_hidden() == str(tmp_path / "pyspark")
