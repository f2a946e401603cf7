"""What is left of a query that has ended: its names and what it failed with, and nothing that Spark would keep for it."""

from __future__ import annotations

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["EndedQuery"]


class EndedQuery(StreamingQuery):
    """A query that has ended, without its execution.

    Parameters
    ----------
    query_id, run_id
        Spark's ids of the query and of this run.
    failure
        What it has failed with; None where it has not.
    """

    def __init__(self, query_id: str, run_id: str, failure: StreamingQueryException | None) -> None:
        self._id, self._run_id, self._failure = query_id, run_id, failure
        _forget_frames(failure)

    @property
    def id(self) -> str:
        """Spark's id of the query."""
        return self._id

    @property
    def runId(self) -> str:  # noqa: N802  # pyspark's name
        """Spark's id of this run."""
        return self._run_id

    @property
    def isActive(self) -> bool:  # noqa: N802  # pyspark's name
        """False."""
        return False

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802  # pyspark's name
        """Return at once, or raise what it has failed with."""
        if self._failure is not None:
            _forget_frames(self._failure)  # of who asked before
            raise self._failure
        return None if timeout is None else True

    def exception(self) -> StreamingQueryException | None:
        """Return what it has failed with."""
        return self._failure


def _forget_frames(failure: BaseException | None) -> None:
    """Take away the frames that an exception and its causes have gone through, which keep the query and what the application had there."""
    left, seen = [failure], set[int]()
    while left:
        error = left.pop()
        if isinstance(error, BaseException) and id(error) not in seen:
            seen.add(id(error))
            error.__traceback__ = None
            left += [error.__cause__, error.__context__, getattr(error, "_cause", None)]
