"""One driver at a time works on a checkpoint that is drained: a file that its owner keeps changing, and others watch before they take over.

The clocks of two machines are never compared: a claim is void when it has not changed for a while by the clock of whoever looks.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass

from spark_drain_agent.bypass import as_agent
from spark_drain_agent.filesystem import CheckpointFiles
from spark_drain_agent.journal import DRAIN_FOLDER
from spark_drain_agent.spark_internals import JavaError, SparkInternals
from spark_drain_agent.trace import LOG

__all__ = ["CLAIM_CONF", "CLAIM_FILE", "CheckpointClaimedError", "Claim", "claim"]

CLAIM_CONF = "spark.sparkdrain.claimSeconds"
"""After how many seconds without a change this driver's claims are void; default 15."""

CLAIM_FILE = f"{DRAIN_FOLDER}/claim"
_BEATS = 5
_DEFAULT_SECONDS = "15"


class CheckpointClaimedError(Exception):
    """Another driver, which is alive, is draining the checkpoint; the message names it."""


class Claim:
    """This run's claim on a checkpoint, renewed by a thread of its own until `release`."""

    def __init__(self, files: CheckpointFiles, run_id: str, seconds: float) -> None:
        self._files, self._run_id, self._seconds = files, run_id, seconds
        self._released = threading.Event()
        self.beat(0)
        self._thread = threading.Thread(target=self._renew, name="spark-drain-claim", daemon=True)
        self._thread.start()

    def beat(self, number: int) -> None:
        """Change the file."""
        self._files.write(CLAIM_FILE, json.dumps({"run": self._run_id, "beat": number, "seconds": self._seconds}))

    def _renew(self) -> None:
        number = 0
        with as_agent():
            while not self._released.wait(self._seconds / _BEATS):
                number += 1
                try:
                    self.beat(number)
                except (JavaError, OSError) as error:
                    LOG.warning("the claim on %s could not be renewed: %s", self._files.root, error)

    def release(self) -> None:
        """Let others go on at once."""
        self._released.set()
        self._thread.join()
        self._files.delete(CLAIM_FILE)


def claim(files: CheckpointFiles, internals: SparkInternals) -> Claim:
    """Claim a checkpoint for this run.

    Raises
    ------
    CheckpointClaimedError
        Another driver has it and shows that it is alive.
    """
    run_id, seconds = internals.application_id, float(internals.session_conf(CLAIM_CONF, _DEFAULT_SECONDS))
    found = _read(files)
    if found is None or found.run == run_id:
        return Claim(files, run_id, seconds)
    _wait_until_void(files, found)
    LOG.info("%s: the claim of run %s is void, its driver is gone", files.root, found.run)
    made = Claim(files, run_id, seconds)
    time.sleep(seconds / _BEATS)  # of two that waited, the one that wrote last has it
    now = _read(files)
    if now is None or now.run != run_id:
        raise CheckpointClaimedError(f"{files.root} was claimed by another run at the same time")
    return made


@dataclass(frozen=True)
class _Found:
    run: str
    text: str
    seconds: float


def _read(files: CheckpointFiles) -> _Found | None:
    text = _text(files) or _text(files)  # some filesystems have no file for a moment while they replace it
    if text is None:
        return None
    try:
        loaded = json.loads(text)
        return _Found(str(loaded["run"]), text, float(loaded["seconds"]))
    except (ValueError, KeyError, TypeError):
        return _Found("unknown", text, float(_DEFAULT_SECONDS))


def _text(files: CheckpointFiles) -> str | None:
    try:
        return files.read(CLAIM_FILE)
    except JavaError:  # it was there, and was gone when it was opened
        return None


def _wait_until_void(files: CheckpointFiles, found: _Found) -> None:
    until = time.monotonic() + found.seconds
    while time.monotonic() < until:
        time.sleep(found.seconds / _BEATS / 2)
        now = _read(files)
        if now is None:
            return
        if now.text != found.text:
            raise CheckpointClaimedError(f"{files.root} is being drained by run {now.run}, which is alive: one of the two must stop")
