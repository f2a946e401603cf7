"""What `recover` and `resume` say of a directory that is none of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_drain_agent.cli.checkpoint_commands import run

from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

COMMANDS = {"recover": "--discard-pending", "resume": "--from=archive"}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["missing", "empty", "parent"])
def test_not_a_checkpoint(warm: Warm, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, kind: str) -> None:
    place = tmp_path / kind
    if kind != "missing":
        place.mkdir()
    if kind == "parent":
        (place / "query").mkdir()
        (place / "query/metadata").write_text("{}")
    assert run(command, [str(place), COMMANDS[command]]) == 1
    said = capsys.readouterr().err
    assert f"{place} is not a checkpoint directory: no metadata file" in said
    assert "give the checkpointLocation of one query" in said
    assert place.exists() == (kind != "missing")


def test_a_checkpoint_that_was_never_drained(warm: Warm, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "metadata").write_text('{"id":"6b6d3c6e-0a51-4a71-8a63-0f5b1c0e9a11"}')
    assert run("resume", [str(tmp_path), COMMANDS["resume"]]) == 1
    assert "has no drain journal: this query was never drained" in capsys.readouterr().err
    assert run("recover", [str(tmp_path), COMMANDS["recover"]]) == 1
    assert "no drain is under way" in capsys.readouterr().err
