"""One driver at a time works on a checkpoint that is drained, or that runs its first batch after a drain.

Its lease has a heartbeat, which others watch before they take over.

The clocks of two machines are never compared: a lease is void when its heartbeat has not changed for a while by the clock of whoever looks.
The heartbeat is a file of its own, because some filesystems have no file for a moment while they replace it: a lease that is replaced with
each heartbeat would now and then look as if it had been released.
"""

from __future__ import annotations

import errno
import json
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from weakref import WeakValueDictionary

from spark_drain_store.reentrant_event import ReentrantEvent

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.checkpoint.files import CheckpointFiles, CheckpointLeasedError, nothing
from spark_drain_agent.checkpoint.journal import DRAIN_FOLDER
from spark_drain_agent.clock import monotonic, utc_now
from spark_drain_agent.durations import LEASE
from spark_drain_agent.milestones import LOG
from spark_drain_agent.spark_internals.errors import JavaError, class_of, in_words, is_denied
from spark_drain_agent.spark_internals.open_calls import leaves_call_open
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.start_waits import pause

__all__ = ["LEASE_FILES", "Lease", "acquire_lease", "obstacle_to_leasing"]

_LEASE_FILE = f"{DRAIN_FOLDER}/lease"
_HEARTBEAT_FILE = f"{DRAIN_FOLDER}/lease-heartbeat"
LEASE_FILES = (_LEASE_FILE, _HEARTBEAT_FILE)
"""Names in the checkpoint; others may take over when neither changes."""
_PROBE_FILE = f"{DRAIN_FOLDER}/probe"

_DAMAGED = "org.apache.hadoop.fs.ChecksumException"
_HEARTBEATS = 5
_LONGEST_LOOK_SECONDS = 5.0


class Lease:
    """This run's lease on a checkpoint, kept alive by a thread of its own until `release`.

    Parameters
    ----------
    files, internals
        The checkpoint and this run.
    seconds
        After which it is void without a heartbeat.
    before
        The lease that it takes the place of, or None.

    Raises
    ------
    CheckpointLeasedError
        There is another one by now.
    OSError
        The system has no thread for it.
    """

    def __init__(self, files: CheckpointFiles, internals: SparkInternals, seconds: float, before: _Found | None) -> None:
        self._files, self._internals, self._seconds = files, internals, seconds
        self._run_id = run_id = internals.application_id
        self._written, self._released = ReentrantEvent(), ReentrantEvent()
        self._text = json.dumps({"run": run_id, "seconds": seconds, "lease": str(uuid.uuid4())})
        # As of before it is asked for: this process may stand still until it has the answer.
        self._renewed_at = monotonic()
        self.over = ReentrantEvent()
        """Set when this run does nothing more to the files."""
        self.lost = False
        """Whether another driver has taken the checkpoint over, because this process stood still for longer than its lease."""
        self._thread = threading.Thread(target=self._renew, name="spark-drain-lease", daemon=True)
        self._start_thread()
        try:
            if not _written(files, self._text, before.text if before is not None else None):
                raise _leased_meanwhile(files)
        except BaseException:
            self._released.set()
            raise
        finally:
            self._written.set()
        files.check_before_change = self._check
        _of_this_process[self._text] = self
        _texts_of_this_process.add(self._text)

    def _start_thread(self) -> None:
        """Start what keeps it alive, before there is anything to keep."""
        try:
            self._thread.start()
        except RuntimeError as error:  # a system without threads for now has some later, as it has files and memory
            raise OSError(errno.EAGAIN, f"the lease on {self._files.root} has no thread that keeps it alive: {error}") from error

    def _renew(self) -> None:
        number = 0
        self._written.wait()
        with as_agent():
            while not self._released.wait(self._seconds / _HEARTBEATS):
                number += 1
                asked_at = monotonic()
                try:
                    if _text(self._files, _LEASE_FILE) not in (self._text, ""):
                        self.lost = True  # acquired anew: by another run, or by this one after it had given up
                        return
                    self._files.write(_HEARTBEAT_FILE, f"{self._run_id} {number}")
                    self._renewed_at = asked_at
                except CheckpointLeasedError as error:
                    LOG.warning("%s", error)
                    return
                except (*JavaError, OSError) as error:
                    if self._internals.jvm_ended:
                        return
                    LOG.warning("the lease on %s could not be renewed: %s", self._files.root, in_words(error))

    def _check(self) -> None:
        """Raise `CheckpointLeasedError` where others may have thought that this driver is gone, and one has acted on it.

        Without a heartbeat it is asked before each change: nobody else has seen a sign of life, whatever this driver has seen.
        """
        if not self.lost and monotonic() - self._renewed_at > self._seconds:
            self.lost = _text(self._files, _LEASE_FILE) != self._text
        if self.lost:
            raise CheckpointLeasedError(
                f"{self._files.root}: this driver stood still for longer than its lease, and another one has taken over"
            )

    @property
    def text(self) -> str:
        """What its file holds."""
        return self._text

    @property
    def spark_stopped(self) -> bool:
        """Whether the application has stopped the SparkContext of the run that acquired it."""
        return self._internals.stop_returned

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.release_after(error)

    def release_after(self, error: BaseException | None) -> None:
        """Release it, but where the thread may be in the middle of a call into the JVM: then it becomes void after a while."""
        if error is not None and leaves_call_open(error):
            self.fall_silent()
        else:
            self.release()

    def fall_silent(self) -> None:
        """Leave the files to whoever has them now."""
        self._renew_no_more()
        self.over.set()

    def _renew_no_more(self) -> None:
        self._released.set()
        self._thread.join()
        if self._files.check_before_change == self._check:
            self._files.check_before_change = nothing

    def release(self) -> None:
        """Let others go on at once; a lease that this run has acquired anew since stays."""
        self._renew_no_more()
        try:
            with _alone_at(self._files.root):
                if _text(self._files, _LEASE_FILE) == self._text:
                    left = (_PROBE_FILE,) if self._files.compares else ()  # by a driver that was killed while it tried the store
                    # The lease last: who finds none finds no old heartbeat either.
                    self._files.delete_files(*left, *reversed(LEASE_FILES))
        finally:
            self.over.set()


def _written(files: CheckpointFiles, text: str, before: str | None) -> bool:
    """Write a lease where there is still the one before; one that these files had, and have lost, does not forbid that."""
    check, files.check_before_change = files.check_before_change, nothing
    try:
        return files.write_if(_LEASE_FILE, text, before)
    finally:
        files.check_before_change = check


_of_this_process: WeakValueDictionary[str, Lease] = WeakValueDictionary()
_texts_of_this_process: set[str] = set()
"""Of those as well that nobody holds any more. An application id tells no process: `spark.app.id` may be a conf."""


_changing: dict[str, threading.RLock] = {}
"""By checkpoint: held while this process releases its lease, or replaces it by another one; a signal handler may want one meanwhile."""


def _alone_at(root: str) -> threading.RLock:
    return _changing.setdefault(root, threading.RLock())


def _untold(_: str) -> None:
    pass


_comparing: set[str] = set()
"""Checkpoints whose store was tried in this process: rights may be granted for one folder and not for another."""


def obstacle_to_leasing(files: CheckpointFiles) -> str:
    """Return why no lease could keep two drivers apart in a store that is said to have conditional writes, or "".

    Not every store that speaks a protocol does what its connector asks for: that takes a few requests to find out, once per checkpoint.

    Raises
    ------
    Py4JJavaError
        The store denies this driver one of them.
    """
    if not files.compares or files.root in _comparing:
        return ""
    try:
        try:
            obstacle = files.obstacle_to_comparing(_PROBE_FILE)
        finally:
            files.delete(_PROBE_FILE)
    except (*JavaError, OSError) as error:
        if is_denied(error):
            raise
        return f"no object can be written only where there is none, or where it is as it was: {in_words(error, 300)}"
    if not obstacle:
        _comparing.add(files.root)
    return obstacle


def acquire_lease(files: CheckpointFiles, internals: SparkInternals, tell: Callable[[str], None] = _untold) -> Lease:
    """Acquire the lease on a checkpoint for this run.

    Parameters
    ----------
    files, internals
        The checkpoint and this run.
    tell
        Called with what is waited for while another run has the lease, and with "" when it is void.

    Raises
    ------
    CheckpointLeasedError
        Another driver has it and shows that it is alive.
    """
    seconds = LEASE.read_or_default(internals.session_conf)
    if files.compares:
        with suppress(CheckpointLeasedError):
            return Lease(files, internals, seconds, None)  # it is free nearly always
    found = _free_or_ones_own(files, internals, seconds)
    void = None if isinstance(found, Lease) else found
    made = found if isinstance(found, Lease) else Lease(files, internals, seconds, _wait_until_void(files, found, tell))
    if void is not None:
        LOG.info("%s: the lease of run %s is void, its driver is gone", files.root, void.run)
    if not (files.compares or (void is None and files.renames_atomically)):
        time.sleep(seconds / _HEARTBEATS)  # of two that wrote it at the same time, the one that wrote last has it
        now = _read(files)
        if now is None or now.text != made.text:
            made.fall_silent()
            raise _leased_meanwhile(files)
    if void is not None:
        tell("")
    return made


def _free_or_ones_own(files: CheckpointFiles, internals: SparkInternals, seconds: float) -> Lease | _Found:
    """Acquire a lease that is free or of this run; return that of somebody else."""
    with _alone_at(files.root):
        found = _read(files)
        mine = found is not None and found.run == internals.application_id and found.text in _texts_of_this_process
        if found is None or (mine and _stopped(found) is None):
            return Lease(files, internals, seconds, found)
        return found


def _leased_meanwhile(files: CheckpointFiles) -> CheckpointLeasedError:
    return CheckpointLeasedError(f"{files.root} was leased to another run at the same time")


@dataclass(frozen=True)
class _Found:
    run: str
    seconds: float
    text: str
    heartbeat: str


def _read(files: CheckpointFiles) -> _Found | None:
    text = _text(files, _LEASE_FILE)
    if text is None:
        return None
    try:
        loaded = json.loads(text)
        run, seconds = str(loaded["run"]), LEASE.within(float(loaded["seconds"]))
    except (ValueError, KeyError, TypeError, OverflowError):
        run, seconds = "unknown", LEASE.default
    return _Found(run, seconds, text, _text(files, _HEARTBEAT_FILE) or "")


def _text(files: CheckpointFiles, name: str) -> str | None:
    """Return a file's text, "" where it is damaged; a store that refuses for a moment says nothing about whose it is."""
    try:
        return files.read(name)
    except JavaError as error:
        if class_of(error) != _DAMAGED:
            raise
        return ""


def _stopped(found: _Found) -> Lease | None:
    """Return the lease where it is one of this process whose SparkContext was stopped; the next one may have the same run id."""
    mine = _of_this_process.get(found.text)
    return mine if mine is not None and mine.spark_stopped else None


def _wait_until_void(files: CheckpointFiles, found: _Found, tell: Callable[[str], None]) -> _Found | None:
    """Return the void lease; None where it was released."""
    mine = _stopped(found)
    if mine is not None:  # what still works there can only fail, and lets go then
        tell(f"waits for run {found.run} of this driver, whose SparkContext was stopped, to let go of {files.uri(_LEASE_FILE)}")
        mine.over.wait()
        return _read(files)
    until = monotonic() + found.seconds
    at = (utc_now() + timedelta(seconds=found.seconds)).isoformat(timespec="seconds")
    waits = f"waits until {at} for run {found.run}, which has the lease {files.uri(_LEASE_FILE)} and may be alive: void if it gives no sign"
    LOG.info("%s", waits)
    tell(waits)
    while monotonic() < until:
        pause(min(found.seconds / _HEARTBEATS / 2, _LONGEST_LOOK_SECONDS))
        now = _read(files)
        if now is None:
            return None
        if now != found:
            raise CheckpointLeasedError(f"{files.root} is in use by run {now.run}, which is alive: one of the two must stop")
    return found
