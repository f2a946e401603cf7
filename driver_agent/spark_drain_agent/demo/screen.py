"""Plain text that reads well on a terminal and in a pipe."""

from __future__ import annotations

import time
from typing import TextIO

__all__ = ["Screen"]

_PIPE_SECONDS = 4.0


class Screen:
    """Numbered steps with the time since the start, and below them one line that follows what happens.

    Parameters
    ----------
    stream
        On a terminal the live line is redrawn; elsewhere it is printed every few seconds.
    steps
        How many steps there will be.
    """

    def __init__(self, stream: TextIO, steps: int) -> None:
        self._stream = stream
        self._steps = steps
        self._step = 0
        self._began = time.monotonic()
        self._live = stream.isatty()
        self._drawn = False
        self._printed = ("", float("-inf"))

    def step(self, text: str) -> None:
        """Begin the next step."""
        self._step += 1
        self._line(f"[{self._step}/{self._steps}] {text}")

    def say(self, text: str) -> None:
        """Print lines that stay."""
        for line in text.splitlines():
            self._line(f"      {line}")

    def follow(self, text: str) -> None:
        """Show how things are now."""
        if self._live:
            self._stream.write(f"\r\x1b[2K{self._clock()}       {text}")
            self._stream.flush()
            self._drawn = True
            return
        shown, when = self._printed
        if text != shown and time.monotonic() - when >= _PIPE_SECONDS:
            self._printed = (text, time.monotonic())
            self.say(f" {text}")

    def _clock(self) -> str:
        return f"{time.monotonic() - self._began:5.1f}s "

    def _line(self, text: str) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[2K")
            self._drawn = False
        print(f"{self._clock()}{text}".rstrip(), file=self._stream, flush=True)
