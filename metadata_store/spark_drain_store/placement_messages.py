"""Placement request and placement response, and their JSON: Samza's ContainerPlacementMessage (SEP-22) for one executor of Spark.

JSON has Samza's names, ``deploymentId`` for the run and ``processorId`` for the executor; Python has Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from spark_drain_store.codec import KEY, Reader, render

__all__ = [
    "DEFAULT_EXPIRY_SECONDS",
    "MAX_EXPIRY_SECONDS",
    "Destination",
    "PlacementRequest",
    "PlacementResponse",
    "PlacementStatus",
    "UnsupportedDestinationError",
]

_VERSION: Final = 1
DEFAULT_EXPIRY_SECONDS: Final = 300
MAX_EXPIRY_SECONDS: Final = 86_400

_SHOWN: Final = 80
_STANDBY: Final = "STANDBY"
"""Samza's name of a node with a standby container."""
_EXECUTOR_ID = re.compile(r"[1-9][0-9]{0,17}")
_DNS_SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class UnsupportedDestinationError(ValueError):
    """A request names an executor, a destination or an expiry that cannot be meant; the text says which and what can."""


class PlacementStatus(StrEnum):
    """How far a placement is (SEP-22's StatusCode)."""

    CREATED = "CREATED"
    """It was requested, and no agent has answered."""
    BAD_REQUEST = "BAD_REQUEST"
    """It was refused; nothing was changed."""
    ACCEPTED = "ACCEPTED"
    """It waits for the placements before it."""
    IN_PROGRESS = "IN_PROGRESS"
    """The executor is being replaced."""
    SUCCEEDED = "SUCCEEDED"
    """The executor runs at its destination."""
    FAILED = "FAILED"
    """It was tried and not achieved; the message says what runs now."""

    @property
    def finished(self) -> bool:
        """Whether nothing more is done about it."""
        return self in (PlacementStatus.BAD_REQUEST, PlacementStatus.SUCCEEDED, PlacementStatus.FAILED)


class Destination(StrEnum):
    """Destinations that are no node's name (SEP-22); no node can have such a name, for names of nodes are in lower case."""

    ANY_OTHER = "ANY_OTHER"
    """Any node but the present one."""
    LAST_SEEN = "LAST_SEEN"
    """The present node: a restart in place, with the new executor before the old one."""
    FORCE_RESTART_LAST_SEEN = "FORCE_RESTART_LAST_SEEN"
    """The present node, with the old executor ended first: for a node without room for two."""


@dataclass(frozen=True, kw_only=True)
class PlacementRequest:
    """A request to move or restart one executor (SEP-22's ContainerPlacementRequestMessage).

    Parameters
    ----------
    placement_id
        Identifier of the placement; also its key in the store.
    created_at
        UTC time of the request; placements are carried out in this order.
    executor_id
        Spark's executor id, such as ``4``.
    destination_host
        Name of a node, or a `Destination`; "" with a ``node_selector``.
    node_selector
        Labels that the node must have; in addition to ``destination_host`` ANY_OTHER, or alone.
    run_id
        ``spark.app.id`` of the run that is meant; None means the run that sees it first.
    expiry_seconds
        How long the new executor may take to be there; the running one is untouched until it is.
    decommission_at
        When the executor is decommissioned even if no new one is there, and whatever placements are before this one; None means never.
    withdrawn
        The requester has changed its mind.
    """

    placement_id: str = field(metadata={KEY: "uuid"})
    created_at: datetime = field(metadata={KEY: "timestamp"})
    executor_id: str = field(metadata={KEY: "processorId"})
    destination_host: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    run_id: str | None = field(default=None, metadata={KEY: "deploymentId"})
    expiry_seconds: int = field(default=DEFAULT_EXPIRY_SECONDS, metadata={KEY: "requestExpiry"})
    decommission_at: datetime | None = None
    withdrawn: bool = False

    def check(self) -> None:
        """Raise `UnsupportedDestinationError` where the request cannot be meant, whatever runs."""
        if not _EXECUTOR_ID.fullmatch(self.executor_id):
            raise UnsupportedDestinationError(f"processorId must be the id of an executor, such as '4', not {self.executor_id!r}")
        if not 0 < self.expiry_seconds <= MAX_EXPIRY_SECONDS:
            raise UnsupportedDestinationError(f"requestExpiry must be 1 to {MAX_EXPIRY_SECONDS} seconds, not {self.expiry_seconds}")
        if self.decommission_at is not None and self.destination_host == Destination.FORCE_RESTART_LAST_SEEN:
            raise UnsupportedDestinationError(
                f"decommissionAt cannot be joined with {Destination.FORCE_RESTART_LAST_SEEN}, which ends the executor first: leave one out"
            )
        if self.node_selector:
            _check_selector(self.node_selector)
            if self.destination_host not in ("", Destination.ANY_OTHER):
                raise UnsupportedDestinationError(
                    f"destinationHost {self.destination_host!r} cannot be joined with a nodeSelector: give one of them, or ANY_OTHER"
                )
        elif self.destination_host == _STANDBY:
            raise UnsupportedDestinationError(
                f"destinationHost {_STANDBY}: Spark has no standby executors; with {Destination.ANY_OTHER} a new one is there before the "
                "old one goes"
            )
        elif self.destination_host not in [str(item) for item in Destination] and not _DNS_SUBDOMAIN.fullmatch(self.destination_host):
            raise UnsupportedDestinationError(
                f"destinationHost must be the name of a node or one of {', '.join(Destination)}, not {self.destination_host!r}"
            )

    def to_json(self) -> str:
        """Return the stored form."""
        return render(self, _VERSION)

    @classmethod
    def from_json(cls, key: str, text: str) -> PlacementRequest:
        """Read the stored form of the entry ``key``; raises `MalformedMessageError`."""
        reader = Reader.over(f"placement request {key!r}", text, _VERSION)
        return cls(
            placement_id=reader.matching("uuid", key),
            created_at=reader.time("timestamp"),
            executor_id=reader.text("processorId"),
            destination_host=reader.text("destinationHost", ""),
            node_selector=reader.text_map("nodeSelector"),
            run_id=reader.optional_text("deploymentId"),
            expiry_seconds=reader.integer("requestExpiry", DEFAULT_EXPIRY_SECONDS),
            decommission_at=reader.optional_time("decommissionAt"),
            withdrawn=reader.flag("withdrawn"),
        )


@dataclass(frozen=True, kw_only=True)
class PlacementResponse:
    """The agent's answer to one placement request (SEP-22's ContainerPlacementResponseMessage); rewritten as a whole at each step.

    Parameters
    ----------
    placement_id
        The placement; also the key in the store.
    status
        How far it is.
    message
        Why, for people: SEP-22's responseMessage.
    updated_at
        UTC time of this write.
    run_id
        ``spark.app.id`` of the run that answered.
    executor_id, destination_host
        As requested.
    source_node, node
        Where the executor was, and where the new one is; "" as long as that is not known.
    new_executor_id
        Spark's id of the executor that replaces it; "" as long as there is none.
    decommissioned
        The executor was ended at its ``decommission_at``, without a new one.
    replaced
        The new executor is there and the old one gone; what may still come is how long the first batch after that takes.
    batch_query, first_batch_ms, ordinary_batch_ms
        Milliseconds of the first batch after the replacement and of one before, of the query where that one was the longest; "" and None
        where none had ended when the response was written.
    """

    placement_id: str = field(metadata={KEY: "uuid"})
    status: PlacementStatus = field(metadata={KEY: "statusCode"})
    updated_at: datetime = field(metadata={KEY: "timestamp"})
    run_id: str = field(default="", metadata={KEY: "deploymentId"})
    executor_id: str = field(default="", metadata={KEY: "processorId"})
    destination_host: str = ""
    source_node: str = ""
    node: str = ""
    new_executor_id: str = ""
    decommissioned: bool = False
    replaced: bool = False
    batch_query: str = ""
    first_batch_ms: int | None = None
    ordinary_batch_ms: int | None = None
    message: str = field(default="", metadata={KEY: "responseMessage"})

    def to_json(self) -> str:
        """Return the stored form."""
        return render(self, _VERSION)

    @classmethod
    def from_json(cls, key: str, text: str) -> PlacementResponse:
        """Read the stored form of the entry ``key``; raises `MalformedMessageError`."""
        reader = Reader.over(f"placement response {key!r}", text, _VERSION)
        return cls(
            placement_id=reader.matching("uuid", key),
            status=PlacementStatus(reader.choice("statusCode", PlacementStatus)),
            updated_at=reader.time("timestamp"),
            run_id=reader.text("deploymentId", ""),
            executor_id=reader.text("processorId", ""),
            destination_host=reader.text("destinationHost", ""),
            source_node=reader.text("sourceNode", ""),
            node=reader.text("node", ""),
            new_executor_id=reader.text("newExecutorId", ""),
            decommissioned=reader.flag("decommissioned"),
            replaced=reader.flag("replaced"),
            batch_query=reader.text("batchQuery", ""),
            first_batch_ms=reader.optional_integer("firstBatchMs"),
            ordinary_batch_ms=reader.optional_integer("ordinaryBatchMs"),
            message=reader.text("responseMessage", ""),
        )


def _check_selector(selector: Mapping[str, str]) -> None:
    for name, value in selector.items():
        prefix, slash, rest = name.rpartition("/")
        if not _LABEL_NAME.fullmatch(rest) or (slash and not _DNS_SUBDOMAIN.fullmatch(prefix)):
            raise UnsupportedDestinationError(f"nodeSelector has {name[:_SHOWN]!r}, which is no label's name")
        if value and not _LABEL_NAME.fullmatch(value):
            raise UnsupportedDestinationError(f"nodeSelector {name!r} has {value[:_SHOWN]!r}, which is no label's value")
