"""One driver at a time works on a checkpoint that is drained: its claim has a beat, which others watch before they take over.

The clocks of two machines are never compared: a claim is void when its beat has not changed for a while by the clock of whoever looks.
The beat is a file of its own, because some filesystems have no file for a moment while they replace it: a claim that is replaced with each
beat would now and then look as if it had been released.
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

__all__ = ["CLAIM_CONF", "CLAIM_FILES", "CheckpointClaimedError", "Claim", "claim"]

CLAIM_CONF = "spark.sparkdrain.claimSeconds"
"""After how many seconds without a change this driver's claims are void; default 15."""

_CLAIM_FILE = f"{DRAIN_FOLDER}/claim"
_BEAT_FILE = f"{DRAIN_FOLDER}/claim-beat"
CLAIM_FILES = (_CLAIM_FILE, _BEAT_FILE)
"""Names in the checkpoint; others may take over when neither changes."""

_BEATS = 5
_DEFAULT_SECONDS = "15"


class CheckpointClaimedError(Exception):
    """Another driver, which is alive, is draining the checkpoint; the message names it."""


class Claim:
    """This run's claim on a checkpoint, kept alive by a thread of its own until `release`."""

    def __init__(self, files: CheckpointFiles, run_id: str, seconds: float) -> None:
        self._files, self._run_id, self._seconds = files, run_id, seconds
        self._released = threading.Event()
        files.write(_CLAIM_FILE, json.dumps({"run": run_id, "seconds": seconds}))
        self._thread = threading.Thread(target=self._renew, name="spark-drain-claim", daemon=True)
        self._thread.start()

    def _renew(self) -> None:
        number = 0
        with as_agent():
            while not self._released.wait(self._seconds / _BEATS):
                number += 1
                try:
                    self._files.write(_BEAT_FILE, f"{self._run_id} {number}")
                except (JavaError, OSError) as error:
                    LOG.warning("the claim on %s could not be renewed: %s", self._files.root, error)

    def fall_silent(self) -> None:
        """Leave the files to whoever has them now."""
        self._released.set()
        self._thread.join()

    def release(self) -> None:
        """Let others go on at once."""
        self.fall_silent()
        for name in reversed(CLAIM_FILES):  # the claim last: who finds none finds no old beat either
            self._files.delete(name)


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
        made.fall_silent()
        raise CheckpointClaimedError(f"{files.root} was claimed by another run at the same time")
    return made


@dataclass(frozen=True)
class _Found:
    run: str
    seconds: float
    text: str
    beat: str


def _read(files: CheckpointFiles) -> _Found | None:
    text = _text(files, _CLAIM_FILE)
    if text is None:
        return None
    try:
        loaded = json.loads(text)
        run, seconds = str(loaded["run"]), float(loaded["seconds"])
    except (ValueError, KeyError, TypeError):
        run, seconds = "unknown", float(_DEFAULT_SECONDS)
    return _Found(run, seconds, text, _text(files, _BEAT_FILE) or "")


def _text(files: CheckpointFiles, name: str) -> str | None:
    try:
        return files.read(name)
    except JavaError:  # damaged, or it was there and was gone when it was opened
        return "" if files.exists(name) else None


def _wait_until_void(files: CheckpointFiles, found: _Found) -> None:
    until = time.monotonic() + found.seconds
    while time.monotonic() < until:
        time.sleep(found.seconds / _BEATS / 2)
        now = _read(files)
        if now is None:
            return
        if now != found:
            raise CheckpointClaimedError(f"{files.root} is being drained by run {now.run}, which is alive: one of the two must stop")
