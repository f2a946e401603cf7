"""A program in the place of another one."""

import json
import sys
from pathlib import Path
from typing import Any

# What decides where a build of Docker's goes.
_SETTINGS = ("BUILDX_BUILDER", "BUILDX_NO_DEFAULT_ATTESTATIONS")


class StandIn:
    """A program that notes how it is called, and says or fails what it is told to."""

    def __init__(self, folder: Path, name: str) -> None:
        self.notes = folder / f"{name}.calls"
        self.file = folder / f"{name}.replies"
        self.replies: list[tuple[list[str], str, int]] = []
        self.says("", 0)
        program = folder / name
        program.write_text(
            f"#!{sys.executable} -IS\nimport json, os, sys\n"
            "words = sys.argv[1:]\n"
            f"note = [words, {{name: os.environ[name] for name in {_SETTINGS} if name in os.environ}}]\n"
            f"open({str(self.notes)!r}, 'a').write(json.dumps(note) + '\\n')\n"
            f"replies = json.load(open({str(self.file)!r}))\n"
            "text, code = [reply[1:] for reply in replies if words[:len(reply[0])] == reply[0]][-1]\n"
            "print(text, end='\\n' if text else '', file=sys.stderr if code else sys.stdout)\nsys.exit(code)\n"
        )
        program.chmod(0o755)

    def says(self, text: str, code: int, *words: str) -> None:
        """Answer calls that begin with these words; what was said last holds."""
        self.replies.append((list(words), text, code))
        self.file.write_text(json.dumps(self.replies))

    def calls(self, *words: str) -> list[list[str]]:
        """Return the calls that begin with these words."""
        return [call for call, _ in self._noted() if call[: len(words)] == list(words)]

    def settings(self, *words: str) -> list[dict[str, str]]:
        """Return what the environment said about builders in these calls."""
        return [settings for call, settings in self._noted() if call[: len(words)] == list(words)]

    def _noted(self) -> list[Any]:
        return [json.loads(line) for line in self.notes.read_text().splitlines()] if self.notes.exists() else []

    def forget(self) -> None:
        """Begin the notes anew."""
        self.notes.unlink(missing_ok=True)
