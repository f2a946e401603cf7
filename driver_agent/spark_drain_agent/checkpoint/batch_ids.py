"""Whether a batch may run under an id that its query has had before, with other rows: a sink that knows the id would pass over them."""

from __future__ import annotations

from enum import Enum

__all__ = ["BatchIds", "refuse_reuse"]


class BatchIds(Enum):
    """What a sink does with batch ids that it has seen before."""

    NONE = "keeps no batch ids"
    BY_QUERY = "keeps batch ids together with the query's id"
    REMEMBERED = "remembers batch ids whatever the query's id is, and takes no batch with an id that it has seen"
    UNKNOWN = "is code that this agent does not know, and may remember batch ids"

    @property
    def may_start_again(self) -> bool:
        """Whether a query with another id may start again at batch 0."""
        return self in (BatchIds.NONE, BatchIds.BY_QUERY)


def refuse_reuse(batch_ids: BatchIds, *, accepted: bool) -> str:
    """Return why the batch after a flush that the sink may have taken cannot have the flush's id, or "".

    Parameters
    ----------
    batch_ids
        What the sink does with ids; a query whose sink keeps them by query gets another id.
    accepted
        Whether the user says that the sink takes a batch with an id that it has seen.
    """
    if batch_ids is BatchIds.REMEMBERED:
        return "remembers batch ids"
    if batch_ids is BatchIds.UNKNOWN and not accepted:
        return "may remember batch ids (give --accept-batch-id-reuse when it replaces what it has under an id that it has seen)"
    return ""
