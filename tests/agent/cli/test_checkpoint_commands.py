"""What `recover` and `resume` say."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from spark_drain_agent.checkpoint.fence import fence_line
from spark_drain_agent.checkpoint.journal import JournalStep, write_journal
from spark_drain_agent.cli.checkpoint_commands import run

from tests.agent.checkpoint.test_steps import JOURNAL, OFFSETS
from tests.agent.folder import files_in
from tests.agent.warm import Warm
from tests.support.apiserver import ROOT

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


@pytest.mark.parametrize("command", COMMANDS)
def test_a_store_that_cannot_be_opened(warm: Warm, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert run(command, ["nowhere://bucket/checkpoint", COMMANDS[command]]) == 1
    said = capsys.readouterr().err
    assert "error: checkpoint 'nowhere://bucket/checkpoint' cannot be opened: " in said
    assert "with --conf NAME=VALUE" in said


@pytest.mark.parametrize("conf", ["spark.hadoop.fs.s3a.endpoint", "=http://127.0.0.1"])
def test_a_conf_without_name_or_value(capsys: pytest.CaptureFixture[str], conf: str) -> None:
    with pytest.raises(SystemExit):
        run("resume", ["/checkpoint", "--from=archive", f"--conf={conf}"])
    assert f"argument --conf: {conf!r} must be NAME=VALUE" in capsys.readouterr().err


def test_the_job_of_the_example_runs_the_command(warm: Warm, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifests = ROOT / "examples/flights/manifests"
    job = yaml.safe_load((manifests / "resume.yaml").read_text())["spec"]["template"]["spec"]
    application = yaml.safe_load((manifests / "application-v1.yaml").read_text())["spec"]
    (container,) = job["containers"]
    assert (container["image"], job["serviceAccountName"]) == (application["image"], application["driver"]["serviceAccount"])
    python, option, module, name, checkpoint, *options = container["command"]
    assert [python, option, module] == ["python3", "-m", "spark_drain_agent"]
    assert f"--checkpoint={checkpoint}" in application["arguments"]
    assert run(name, [str(tmp_path), *options]) == 1
    assert f"{tmp_path} is not a checkpoint directory" in capsys.readouterr().err


def test_a_checkpoint_that_was_never_drained(warm: Warm, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "metadata").write_text('{"id":"6b6d3c6e-0a51-4a71-8a63-0f5b1c0e9a11"}')
    assert run("resume", [str(tmp_path), COMMANDS["resume"]]) == 1
    assert "has no drain journal: this query was never drained" in capsys.readouterr().err
    (tmp_path / "_drain/6f1c/state").mkdir(parents=True)
    assert run("resume", [str(tmp_path), COMMANDS["resume"]]) == 1
    assert "/_drain/journal is missing, and" in capsys.readouterr().err
    assert run("recover", [str(tmp_path), COMMANDS["recover"]]) == 1
    assert "no drain is under way" in capsys.readouterr().err


def test_a_query_without_state_has_nothing_to_undo(warm: Warm, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = files_in(tmp_path)
    files.write("metadata", JOURNAL.metadata)
    write_journal(files, replace(JOURNAL, step=JournalStep.DONE, checkpoint_policy="Continue", flushes=False))
    assert run("resume", [str(tmp_path), COMMANDS["resume"]]) == 1
    said = capsys.readouterr().err
    assert "had no state and no flush, so there is nothing to undo: start any version on the checkpoint as it is" in said
    assert "the sink has seen" not in said


@pytest.mark.parametrize("newest", [None, 10])
def test_batches_that_are_given_up_are_named(warm: Warm, tmp_path: Path, capsys: pytest.CaptureFixture[str], newest: int | None) -> None:
    """What they have written stays in the sink, also in one that replaces by batch id."""
    files, done = files_in(tmp_path), replace(JOURNAL, first_batch_id=9, step=JournalStep.DONE)
    for name in ("metadata", "offsets/7", "commits/7"):
        files.write(f"{done.work}/{name}", done.metadata if name == "metadata" else OFFSETS)
    files.write("metadata", done.metadata)
    if newest is not None:
        files.write(f"offsets/{newest}", OFFSETS)
    write_journal(files, done)
    assert run("resume", [str(tmp_path), COMMANDS["resume"], "--discard-newer", "--accept-batch-id-reuse"]) == 0
    said = capsys.readouterr().out
    assert "restored: the version that was drained goes on" in said
    assert ("batches 9 to 10 of the newer version are given up" in said) is (newest is not None)


@pytest.mark.parametrize("spelt", [os.path.relpath, str, "file:{}".format])
def test_a_checkpoint_however_its_path_is_written(warm: Warm, tmp_path: Path, spelt: Callable[[Path], str]) -> None:
    """As an application on a laptop may have it, relative to its directory: the state moves into the archive, and back."""
    files = files_in(tmp_path)
    for name in ("offsets/7", "commits/7", "state/0/0/8.delta"):
        files.write(name, OFFSETS)
    files.write("metadata", fence_line(JOURNAL.drain_id))
    write_journal(files, JOURNAL)
    for command, folder in (("recover", f"{JOURNAL.work}/state"), ("resume", "state")):
        assert run(command, [spelt(tmp_path), COMMANDS[command]]) == 0
        assert files.below(folder) == [f"{folder}/0/0/8.delta"]


@pytest.mark.parametrize(("batch_ids", "told"), [("REMEMBERED", True), ("BY_QUERY", False)])
def test_a_flush_that_is_given_up_says_what_cannot_be_restored(
    warm: Warm, tmp_path: Path, capsys: pytest.CaptureFixture[str], batch_ids: str, told: bool
) -> None:
    files = files_in(tmp_path)
    for name in ("offsets/7", "offsets/8", "commits/7", "state/0/0/8.delta", "metadata"):
        files.write(f"{JOURNAL.work}/{name}", OFFSETS if name != "metadata" else JOURNAL.metadata)
    files.write("metadata", fence_line(JOURNAL.drain_id))
    write_journal(files, replace(JOURNAL, batch_ids=batch_ids, step=JournalStep.FLUSH_LOGGED))
    assert run("recover", [str(tmp_path), COMMANDS["recover"]]) == 0
    said = capsys.readouterr().out
    assert ("`resume` does not restore them, since the sink remembers batch ids and may have taken the flush" in said) is told
    assert (run("resume", [str(tmp_path), COMMANDS["resume"]]) == 1) is told
