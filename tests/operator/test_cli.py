"""The command line."""

import pytest
from spark_drain_operator.cli import parse


def test_the_command_line_refuses_nonsense(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in ((["--workers", "0"], "--workers must be at least 1"), (["--resync-seconds", "0.1"], "--resync-seconds")):
        with pytest.raises(SystemExit):
            parse(arguments)
        assert words in capsys.readouterr().err
