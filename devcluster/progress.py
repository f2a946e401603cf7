"""Lines that say what is being done, step n of m, and for how long already."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_STILL_BUSY_SECONDS = 20.0


class Progress:
    """Prints numbered steps to stderr, so that stdout stays machine readable.

    Parameters
    ----------
    total : int
        Number of steps.
    quiet : bool
        Print nothing; for tests.
    """

    def __init__(self, total: int, *, quiet: bool = False) -> None:
        self.total = total
        self.quiet = quiet
        self._number = 0
        self._lock = threading.Lock()
        self._started = time.monotonic()

    def elapsed(self) -> float:
        """Return the seconds since this progress was made."""
        return time.monotonic() - self._started

    def say(self, text: str, number: int | None = None) -> None:
        """Print one line with the step number, by default of the newest step, and the total elapsed time."""
        if not self.quiet:
            print(
                f"[{number or self._number}/{self.total}] {self.elapsed():6.1f}s  {text}",
                file=sys.stderr,
                flush=True,
            )

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Announce a step, and say that it is still going on when it takes long; threads may have one each."""
        with self._lock:
            self._number += 1
            number = self._number
        self.say(text, number)
        began = time.monotonic()
        done = threading.Event()

        def repeat() -> None:
            while not done.wait(_STILL_BUSY_SECONDS):
                self.say(f"{text}: still busy after {time.monotonic() - began:.0f} s", number)

        reminder = threading.Thread(target=repeat, daemon=True)
        reminder.start()
        try:
            yield
        finally:
            done.set()
            reminder.join()
