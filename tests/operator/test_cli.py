"""The command line."""

import logging

import pytest
from spark_drain_operator.cli import OneLine, parse


def test_the_command_line_refuses_nonsense(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in ((["--workers", "0"], "--workers must be at least 1"), (["--resync-seconds", "0.1"], "--resync-seconds")):
        with pytest.raises(SystemExit):
            parse(arguments)
        assert words in capsys.readouterr().err


def test_a_message_is_one_line_of_the_log() -> None:
    """Agents choose the words of their reports."""
    forged = "no\n2026-01-01 00:00:00,000 ERROR forged \x1b[2J\u2028"
    record = logging.LogRecord("operator", logging.INFO, "", 0, "drain: %s", (forged,), None)
    assert OneLine("%(levelname)s %(message)s").format(record) == r"INFO drain: no\n2026-01-01 00:00:00,000 ERROR forged \x1b[2J\u2028"
