"""What a driver would leave behind if it was killed in the middle of a drain: copied at every moment, while the drain goes on to its end.

One drain gives all of its crash points. What a killed driver leaves is what the store has carried out, what the sink has taken, and what
was reported; so a copy of these three is started from as if their driver was gone.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF
from spark_drain_agent.spark_internals.writer import VERSION_CONF
from spark_drain_store import Channel, DrainState

from tests.s3.table import READ, Parts, Table, add_rest, counted, input_before
from tests.semantics.warm import Application, Input, read_all
from tests.support.s3_proxy import Request, S3Proxy
from tests.support.s3_server import BUCKET, DIRECT, S3Server

__all__ = ["MANAGERS", "MANAGER_CONF", "Left", "Moment", "Recording", "Setting", "files_below", "left_behind", "record"]

MANAGER_CONF = "spark.sql.streaming.checkpointFileManagerClass"
MANAGERS = {"default": None, "abortable": "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"}
_OF_NO_CONSEQUENCE = re.compile(r"/_drain/(lease-heartbeat|probe)$|\.tmp$")
"""A heartbeat, what a store is tried with, and Spark's temporary files, which nothing reads."""


@dataclass(frozen=True)
class Setting:
    """How a query is drained.

    Parameters
    ----------
    flush
        The conf spark.sparkdrain.flush.
    policy
        ``checkpoint.policy``.
    manager
        Spark's file manager, a key of `MANAGERS`.
    bucket
        That of its checkpoint.
    """

    flush: str
    policy: str
    manager: str = "default"
    bucket: str = BUCKET

    def __str__(self) -> str:
        return "-".join((self.flush, self.policy, self.manager, *([self.bucket] if self.bucket != BUCKET else [])))

    def apply(self, spark: SparkSession) -> None:
        """Set the confs of the session."""
        spark.conf.set(FLUSH_CONF, self.flush)
        spark.conf.set(VERSION_CONF, "1")  # the sink's code is the same, and what it holds is not
        manager = MANAGERS[self.manager]
        if manager is None:
            spark.conf.unset(MANAGER_CONF)
        else:
            spark.conf.set(MANAGER_CONF, manager)


@dataclass(frozen=True)
class Moment:
    """Where a driver may be killed.

    Parameters
    ----------
    name
        What has happened last.
    changes
        How many requests have changed the bucket up to then.
    objects
        A copy of the checkpoint.
    parts
        What the sink holds.
    reports
        What was reported.
    """

    name: str
    changes: int
    objects: Path
    parts: Parts
    reports: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A drain with all its moments.

    Parameters
    ----------
    setting
        How it was drained.
    events
        The input, to which what comes after the drain has been added.
    uri
        Of the folder with the checkpoint.
    state
        Names and contents of the state's files before the drain.
    requests
        The drain as it was asked for.
    changes
        The requests that have changed the bucket, in order.
    moments
        In order; those between which nothing but a heartbeat or a temporary file is different are one.
    """

    setting: Setting
    events: Input
    uri: str
    state: Mapping[str, bytes]
    requests: Mapping[str, str]
    changes: list[Request]
    moments: list[Moment]

    @property
    def drain_id(self) -> str:
        """The drain."""
        (drain_id,) = self.requests
        return drain_id

    def numbers(self, kind: str, key: str) -> list[int]:
        """Return the numbers, from 1, of the changes of a kind to a key, both regular expressions as `Fault` takes them."""
        found = enumerate(self.changes, start=1)
        return [number for number, change in found if re.fullmatch(kind, change.kind) and re.search(key, change.key)]

    def after(self, change: int) -> Moment:
        """Return the moment after a change."""
        return [moment for moment in self.moments if moment.changes <= change][-1]


class _Recorder:
    """Notes changes and moments as they come."""

    def __init__(self, objects: Path, copies: Path) -> None:
        self._objects, self._copies = objects, copies
        self._lock = threading.RLock()
        self._last: object = None
        self.table, self.channel = Table(written=self._sink_has_written), Channel.in_memory()
        self.changes: list[Request] = []
        self.moments: list[Moment] = []

    @contextmanager
    def around_change(self, request: Request) -> Iterator[None]:
        with self._lock:  # one at a time, so that each copy is of a moment that there was
            yield
            self.changes.append(request)
            self._note(f"{request.kind} {request.key.partition('/')[2]}")

    def _sink_has_written(self) -> None:
        with self._lock:
            if self.changes:
                self._note("batch in the sink")

    def begin(self) -> None:
        """Take what there is for what the drain changes."""
        self._last = self._now()

    def _now(self) -> object:
        files = {name: text for name, text in files_below(self._objects).items() if not _OF_NO_CONSEQUENCE.search(name)}
        return files, dict(self.table.parts)

    def _note(self, what: str) -> None:
        now = self._now()
        if now == self._last:
            return
        self._last = now
        copied = self._copies / str(len(self.moments))
        shutil.copytree(self._objects, copied)  # with what the server notes of each object
        reports = dict(self.channel.reports.read().entries)
        self.moments.append(Moment(f"{len(self.moments)} {what}", len(self.changes), copied, dict(self.table.parts), reports))


def files_below(folder: Path) -> dict[str, bytes]:
    """Return names and contents of the files in a folder and its folders."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def record(setting: Setting, spark: SparkSession, s3: S3Server, base: Path) -> Recording:
    """Run a query, and drain it."""
    setting.apply(spark)
    base.mkdir()
    events, folder = input_before(spark, base / "events"), str(uuid4())
    objects, uri = s3.objects / setting.bucket / folder, f"s3a://{setting.bucket}/{folder}"
    recorder = _Recorder(objects, base / "moments")
    app = Application(spark, uri, recorder.channel)
    try:
        read_all(app.start(counted(events, "key"), recorder.table))
        state = files_below(objects / "q/state")
        recorder.begin()
        s3.proxy.around_change = recorder.around_change
        with app.asked(DrainState.DRAINED, checkpoint__policy=setting.policy):
            requests = dict(app.channel.requests.read().entries)
    finally:
        s3.proxy.around_change = S3Proxy().around_change
        app.close()
    assert recorder.table.ids == READ
    add_rest(events)
    return Recording(
        setting=setting,
        events=events,
        uri=uri,
        state=state,
        requests=requests,
        changes=recorder.changes,
        moments=recorder.moments,
    )


@dataclass(frozen=True)
class Left:
    """What a killed driver has left: its checkpoint's folder, and what the sink holds."""

    recording: Recording
    moment: Moment
    uri: str
    objects: Path
    table: Table

    def channel(self, *, requested: bool) -> Channel:
        """Return the store, with the request there, or removed."""
        channel = Channel.in_memory()
        reports = {name: text.replace(self.recording.uri, self.uri) for name, text in self.moment.reports.items()}
        channel.reports.write(reports)
        if requested:
            channel.requests.write(self.recording.requests)
        return channel


def left_behind(recording: Recording, moment: Moment, s3: S3Server, spark: SparkSession) -> Left:
    """Put a copy of what there was at a moment into the bucket, as another driver than this one has left it."""
    recording.setting.apply(spark)
    name, application_id = str(uuid4()), spark.sparkContext.applicationId
    bucket = recording.setting.bucket if recording.setting.bucket != BUCKET else DIRECT
    objects = s3.objects / bucket / name
    shutil.copytree(moment.objects, objects)
    for file in (objects / "q/_drain/lease", objects / "q/_drain/journal"):
        if file.exists():
            file.write_text(file.read_text().replace(application_id, "killed"))  # the server's notes of the object stay
    return Left(recording, moment, f"s3a://{bucket}/{name}", objects, Table(moment.parts))
