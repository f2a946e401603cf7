"""The command line."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from spark_drain_operator.cli import OneLine, parse


def test_the_command_line_refuses_nonsense(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["--workers", "0"], "--workers must be at least 1"),
        (["--resync-seconds", "0.1"], "--resync-seconds must be from 1 to 86400, not 0.1"),
        (["--resync-seconds", "nan"], "--resync-seconds must be from 1 to 86400, not nan"),
        (["--namespaces", "a,Spark_Jobs"], "--namespaces: 'Spark_Jobs' is no name of a namespace"),
        (["--node-cordon-seconds", "999999999999"], "--node-cordon-seconds must be at most 86400"),
        (["--node-taint", "example.com/going=999999999999"], "is not a key and up to 86400 seconds"),
        (["--liveness", "8080"], "--liveness '8080' is not a URL such as http://0.0.0.0:8080/healthz"),
    ):
        with pytest.raises(SystemExit):
            parse(arguments)
        assert words in capsys.readouterr().err


def test_a_message_is_one_line_of_the_log() -> None:
    """Agents choose the words of their reports."""
    forged = "no\n2026-01-01 00:00:00,000 ERROR forged \x1b[2J\u2028"
    record = logging.LogRecord("operator", logging.INFO, "", 0, "drain: %s", (forged,), None)
    assert OneLine("%(levelname)s %(message)s").format(record) == r"INFO drain: no\n2026-01-01 00:00:00,000 ERROR forged \x1b[2J\u2028"


@pytest.mark.parametrize(("missing", "arguments"), [("kubernetes", ["evacuate", "node-1"]), ("kopf", ["--namespaces", "a"])])
def test_without_the_operators_packages_there_is_one_line(tmp_path: Path, missing: str, arguments: list[str]) -> None:
    """They are an extra of the package, and the command is there without it."""
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError(\"No module named '{missing}'\", name='{missing}')\n")
    command = [sys.executable, "-m", "spark_drain_operator", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr == f"error: the package {missing} is missing: in a clone of spark-drain run python3 -m pip install '.[operator]'\n"
