"""Offset log, commit log and metadata of a streaming checkpoint, as text.

Spark's HDFSMetadataLog writes one file per batch id: a version line, then JSON lines. A version that is not known is refused before a drain
changes anything, because a wrong seed would lose data silently.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spark_drain_agent.checkpoint.files import CheckpointFiles

__all__ = [
    "END_OF_TIMERS_MS",
    "END_OF_TIME_MS",
    "WATERMARK_POLICY",
    "Checkpoint",
    "CommittedBatch",
    "OffsetEntry",
    "UnknownCheckpointFormatError",
]

END_OF_TIME_MS = 253_402_300_799_000
"""Last second of the year 9999, in milliseconds: a watermark beyond every window, still a valid timestamp everywhere in Spark."""

END_OF_TIMERS_MS = 9_214_646_400_000
"""The year 2262, in milliseconds: a clock beyond every timer, still one that pandas and Arrow can hold (both end in April 2262)."""

_OFFSET_VERSIONS = ("v1", "v2")
_COMMIT_VERSIONS = ("v1", "v2", "v3")
WATERMARK_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
"""Conf that says how several watermarks become one; Spark pins it in the offset log."""


class UnknownCheckpointFormatError(Exception):
    """A log file has a format that this agent would not rewrite correctly."""


@dataclass(frozen=True)
class OffsetEntry:
    """One entry of the offset log: what a batch reads up to.

    Parameters
    ----------
    version
        Of the format: ``v1``, or ``v2``, which names each line's source.
    metadata
        Spark's OffsetSeqMetadata: watermark, batch time, pinned SQL confs.
    lines
        One per source, as it is in the file.
    """

    version: str
    metadata: dict[str, Any]
    lines: tuple[str, ...]

    @classmethod
    def parse(cls, name: str, text: str) -> OffsetEntry:
        """Read a file of the offset log."""
        version, *lines = text.split("\n")
        if version not in _OFFSET_VERSIONS or len(lines) < 2:
            raise UnknownCheckpointFormatError(
                f"{name} has format {version!r}; only {' and '.join(map(repr, _OFFSET_VERSIONS))} offset logs can be drained: "
                "keep spark.sql.streaming.offsetLog.formatVersion at 2 or below"
            )
        try:
            metadata = json.loads(lines[0])
        except ValueError as error:
            raise UnknownCheckpointFormatError(f"{name} has no metadata in its second line: {lines[0][:80]!r}") from error
        return cls(version, metadata, tuple(lines[1:]))

    @property
    def sources(self) -> tuple[str, ...]:
        """What sources are called, in the order of the file."""
        return tuple(line.partition(":")[0] for line in self.lines) if self.version == "v2" else tuple(map(str, range(len(self.lines))))

    @property
    def named(self) -> bool:
        """Whether the sources have names of the user's in place of numbers."""
        return not all(source.isdigit() for source in self.sources)

    @property
    def by_source(self) -> dict[str, str]:
        """One JSON text per source, the next offset to read: by name, or else by number in the order of the query's plan."""
        offsets = self.lines if self.version == "v1" else [line.partition(":")[2] for line in self.lines]
        found = dict(zip(self.sources, offsets, strict=True))
        return found if self.named else {source: found[source] for source in sorted(found, key=int)}

    @property
    def offsets(self) -> tuple[str, ...]:
        """The same in order."""
        return tuple(self.by_source.values())

    @property
    def watermark_ms(self) -> int:
        """The event-time watermark of the batch, in milliseconds."""
        return int(self.metadata.get("batchWatermarkMs", 0))

    @property
    def batch_time_ms(self) -> int:
        """The time that the batch sees, in milliseconds."""
        return int(self.metadata.get("batchTimestampMs", 0))

    def text(self) -> str:
        """Return the file's text."""
        return "\n".join((self.version, json.dumps(self.metadata, separators=(",", ":")), *self.lines))

    def at(self, watermark_ms: int, batch_time_ms: int) -> OffsetEntry:
        """Return the same offsets at another watermark and batch time."""
        return replace(self, metadata={**self.metadata, "batchWatermarkMs": watermark_ms, "batchTimestampMs": batch_time_ms})

    @property
    def confs(self) -> Mapping[str, str]:
        """The SQL confs that the batch was planned with and that later ones keep."""
        found: Mapping[str, str] = self.metadata.get("conf", {})
        return found

    def with_confs(self, confs: Mapping[str, str]) -> OffsetEntry:
        """Return the entry with other pinned confs."""
        return replace(self, metadata={**self.metadata, "conf": dict(confs)})

    def without_confs(self, *names: str) -> OffsetEntry:
        """Return the entry without some pinned confs, so that the next start takes the session's."""
        confs = {key: value for key, value in self.confs.items() if key not in names}
        return replace(self, metadata={**self.metadata, "conf": confs})


@dataclass(frozen=True)
class CommittedBatch:
    """A batch of both logs.

    Parameters
    ----------
    batch_id
        Its id.
    entry
        What it read up to.
    watermark_ms
        The event-time watermark in milliseconds that its commit left behind.
    """

    batch_id: int
    entry: OffsetEntry
    watermark_ms: int


class Checkpoint:
    """The logs in a checkpoint folder or in a copy below it.

    Parameters
    ----------
    files
        Files of the checkpoint.
    folder
        "" for the checkpoint itself, or the relative name of a copy.
    written
        Texts by name of all entries of a copy's logs, where this process has just made it.
    """

    def __init__(self, files: CheckpointFiles, folder: str = "", written: Mapping[str, str] | None = None) -> None:
        self.files = files
        self._prefix = folder + "/" if folder else ""
        self._written = written

    def name(self, part: str) -> str:
        """Return the name of a part (``offsets``, ``state`` ...) relative to the checkpoint's root."""
        return self._prefix + part

    @property
    def state_expires(self) -> bool:
        """Whether a transformWithState keeps state with a time to live, as Spark notes it beside the state of the newest batches."""
        return any(self._expires(f"state/{operator}/_metadata/v2") for operator in self.files.names(self.name("state")))

    @property
    def state_partitions(self) -> int | None:
        """In how many partitions the state is, as Spark notes it beside the state; None where there is no state."""
        for operator in self.files.names(self.name("state")):
            folder = f"state/{operator}/_metadata"
            newest = self._newest(f"{folder}/v2")
            text = self.files.read(self.name(f"{folder}/metadata" if newest is None else f"{folder}/v2/{newest}"))
            try:
                return int(json.loads((text or "").partition("\n")[2])["stateStoreInfo"][0]["numPartitions"])
            except (ValueError, KeyError, TypeError, IndexError):
                continue
        return None

    def _expires(self, operator_metadata: str) -> bool:
        newest = self._newest(operator_metadata)
        _, _, line = ((newest is not None and self.files.read(self.name(f"{operator_metadata}/{newest}"))) or "").partition("\n")
        try:
            properties = json.loads(json.loads(line)["operatorPropertiesJson"] or "{}")
            return any(variable["ttlEnabled"] for variable in properties.get("stateVariables", ()))
        except (ValueError, KeyError, TypeError, AttributeError):
            return False

    def _newest(self, log: str) -> int | None:
        ids = [int(name) for name in self.files.names(self.name(log)) if name.lstrip("-").isdigit()]
        return max(ids, default=None)

    @property
    def newest_offsets(self) -> int | None:
        """Id of the newest planned batch, None where there was never one."""
        return self._newest("offsets")

    @property
    def newest_commit(self) -> int | None:
        """Id of the newest committed batch, None where there is none."""
        return self._newest("commits")

    @property
    def settled(self) -> bool:
        """Whether every planned batch is committed."""
        return self.newest_offsets == self.newest_commit

    def offsets(self, batch_id: int) -> OffsetEntry:
        """Return an entry of the offset log."""
        entry = self.find_offsets(batch_id)
        if entry is None:
            raise UnknownCheckpointFormatError(f"{self.files.uri(self.name(f'offsets/{batch_id}'))} is missing")
        return entry

    def find_offsets(self, batch_id: int) -> OffsetEntry | None:
        """Return an entry of the offset log, None where there is none."""
        name = self.name(f"offsets/{batch_id}")
        text = self.files.read(name) if self._written is None else self._written.get(name)
        return None if text is None else OffsetEntry.parse(self.files.uri(name), text)

    def write_offsets(self, batch_id: int, entry: OffsetEntry) -> None:
        """Write an entry of the offset log."""
        name, text = self.name(f"offsets/{batch_id}"), entry.text()
        self.files.write(name, text)
        if self._written is not None:
            self._written = {**self._written, name: text}

    def write_generation(self, first: int, entry: OffsetEntry, watermark_ms: int) -> None:
        """Write the logs after which the next batch has an id and a watermark, and reads on at an entry's offsets; in no order.

        The watermark of the entry is the one below which that batch drops records as late.
        """
        names = [self.name(f"offsets/{batch_id}") for batch_id in (first - 2, first - 1)]
        commit = {self.name(f"commits/{first - 1}"): _commit_text(_COMMIT_VERSIONS[0], {}, watermark_ms)}
        self.files.write_all({**dict.fromkeys(names, entry.text()), **commit})

    def watermark_after(self, batch_id: int) -> int:
        """Return the event-time watermark in milliseconds that the batch's commit left behind."""
        return self.committed_batch(batch_id).watermark_ms

    def committed_batch(self, batch_id: int) -> CommittedBatch:
        """Return what both logs say of a batch."""
        _, found = self._commit(batch_id)
        entry = self.offsets(batch_id)
        return CommittedBatch(batch_id, entry, max(int(found.get("nextBatchWatermarkMs", 0)), entry.watermark_ms))

    def state_ids(self, batch_id: int) -> list[str]:
        """Return the unique ids of the files in which a batch has left the state; empty before version 2 of the commit log."""
        _, found = self._commit(batch_id)
        operators = dict(found.get("stateUniqueIds") or {})
        return [str(each) for partitions in operators.values() for stores in partitions for each in stores]

    def _commit(self, batch_id: int) -> tuple[str, dict[str, Any]]:
        name = self.name(f"commits/{batch_id}")
        version, _, line = (self.files.read(name) or "").partition("\n")
        try:
            found = json.loads(line or "{}")
        except ValueError:
            found = None
        if version not in _COMMIT_VERSIONS or not isinstance(found, dict):
            raise UnknownCheckpointFormatError(
                f"{self.files.uri(name)} has format {version!r} {line[:80]!r}; only {', '.join(map(repr, _COMMIT_VERSIONS))} commit logs "
                "can be drained: keep spark.sql.streaming.stateStore.checkpointFormatVersion at 2 or below"
            )
        return version, found

    def write_commit(self, batch_id: int, watermark_ms: int, flushed: Checkpoint | None = None) -> None:
        """Write an entry of the commit log: a new one, or that of another log at another watermark.

        From version 2 on an entry names the files in which the state is, so that of the state's batch must go with the state.
        """
        version, found = flushed._commit(batch_id) if flushed is not None else (_COMMIT_VERSIONS[0], {})
        self.files.write(self.name(f"commits/{batch_id}"), _commit_text(version, found, watermark_ms))

    @property
    def metadata(self) -> str | None:
        """Text of the file that holds the query's id, None where there is none."""
        return self.files.read(self.name("metadata"))

    def write_metadata(self, text: str) -> None:
        """Replace the file that holds the query's id."""
        self.files.write(self.name("metadata"), text)

    @staticmethod
    def new_metadata() -> str:
        """Return metadata with a new query id, so that sinks keyed by query id start a new series of batch ids."""
        return json.dumps({"id": str(uuid.uuid4())}, separators=(",", ":"))


def _commit_text(version: str, found: Mapping[str, Any], watermark_ms: int) -> str:
    return f"{version}\n" + json.dumps({**found, "nextBatchWatermarkMs": watermark_ms}, separators=(",", ":"))
