"""Offset log, commit log and metadata of a streaming checkpoint, as text.

Spark's HDFSMetadataLog writes one file per batch id: a version line, then JSON lines. Only version 1 without state ids is understood;
anything else is refused before a drain changes anything, because a wrong seed would lose data silently.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from typing import Any

from spark_drain_agent.filesystem import CheckpointFiles

__all__ = ["END_OF_TIME_MS", "Checkpoint", "OffsetEntry", "UnknownCheckpointFormatError"]

END_OF_TIME_MS = 253_402_300_799_000
"""Last second of the year 9999, in milliseconds: a watermark beyond every window, still a valid timestamp everywhere in Spark."""

_VERSION = "v1"


class UnknownCheckpointFormatError(Exception):
    """A log file has a format that this agent would not rewrite correctly."""


@dataclass(frozen=True)
class OffsetEntry:
    """One entry of the offset log: what a batch reads up to.

    Parameters
    ----------
    metadata
        Spark's OffsetSeqMetadata: watermark, batch time, pinned SQL confs.
    offsets
        One JSON text per source: the next offset to read.
    """

    metadata: dict[str, Any]
    offsets: tuple[str, ...]

    @classmethod
    def parse(cls, name: str, text: str) -> OffsetEntry:
        """Read a file of the offset log."""
        version, *lines = text.split("\n")
        if version != _VERSION or len(lines) < 2:
            raise UnknownCheckpointFormatError(
                f"{name} has format {version!r}; only {_VERSION!r} offset logs can be drained: "
                "keep spark.sql.streaming.offsetLog.formatVersion at 1"
            )
        try:
            metadata = json.loads(lines[0])
        except ValueError as error:
            raise UnknownCheckpointFormatError(f"{name} has no metadata in its second line: {lines[0][:80]!r}") from error
        return cls(metadata, tuple(lines[1:]))

    def text(self) -> str:
        """Return the file's text."""
        return "\n".join((_VERSION, json.dumps(self.metadata, separators=(",", ":")), *self.offsets))

    def at(self, watermark_ms: int, batch_time_ms: int) -> OffsetEntry:
        """Return the same offsets at another watermark and batch time."""
        return replace(self, metadata={**self.metadata, "batchWatermarkMs": watermark_ms, "batchTimestampMs": batch_time_ms})

    def without_confs(self, *names: str) -> OffsetEntry:
        """Return the entry without some pinned confs, so that the next start takes the session's."""
        confs = {key: value for key, value in self.metadata.get("conf", {}).items() if key not in names}
        return replace(self, metadata={**self.metadata, "conf": confs})


class Checkpoint:
    """The logs in a checkpoint folder or in a copy below it.

    Parameters
    ----------
    files
        Files of the checkpoint.
    folder
        "" for the checkpoint itself, or the relative name of a copy.
    """

    def __init__(self, files: CheckpointFiles, folder: str = "") -> None:
        self.files = files
        self._prefix = folder + "/" if folder else ""

    def name(self, part: str) -> str:
        """Return the name of a part (``offsets``, ``state`` ...) relative to the checkpoint's root."""
        return self._prefix + part

    @property
    def state_expires(self) -> bool:
        """Whether a transformWithState keeps state with a time to live, as Spark notes it beside the state of the newest batches."""
        return any(self._expires(f"state/{operator}/_metadata/v2") for operator in self.files.names(self.name("state")))

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
        name = self.name(f"offsets/{batch_id}")
        text = self.files.read(name)
        if text is None:
            raise UnknownCheckpointFormatError(f"{self.files.uri(name)} is missing")
        return OffsetEntry.parse(self.files.uri(name), text)

    def write_offsets(self, batch_id: int, entry: OffsetEntry) -> None:
        """Write an entry of the offset log."""
        self.files.write(self.name(f"offsets/{batch_id}"), entry.text())

    def watermark_after(self, batch_id: int) -> int:
        """Return the event-time watermark in milliseconds that the batch's commit left behind."""
        name = self.name(f"commits/{batch_id}")
        version, _, line = (self.files.read(name) or "").partition("\n")
        try:
            found = json.loads(line or "{}")
        except ValueError:
            found = None
        if version != _VERSION or not isinstance(found, dict) or found.get("stateUniqueIds"):
            raise UnknownCheckpointFormatError(
                f"{self.files.uri(name)} has format {version!r} {line[:80]!r}; only {_VERSION!r} commit logs without "
                "state ids can be drained: "
                "keep spark.sql.streaming.stateStore.checkpointFormatVersion at 1"
            )
        return max(int(found.get("nextBatchWatermarkMs", 0)), int(self.offsets(batch_id).metadata.get("batchWatermarkMs", 0)))

    def write_commit(self, batch_id: int, watermark_ms: int) -> None:
        """Write an entry of the commit log."""
        self.files.write(self.name(f"commits/{batch_id}"), f'{_VERSION}\n{{"nextBatchWatermarkMs":{watermark_ms}}}')

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
