"""What is left of a query that the application has stopped: its names, and nothing that Spark would keep for it."""

from __future__ import annotations

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["EndedQuery"]


class EndedQuery(StreamingQuery):
    """A query that has ended well, without its execution.

    Parameters
    ----------
    query_id, run_id
        Spark's ids of the query and of this run.
    """

    def __init__(self, query_id: str, run_id: str) -> None:
        self._id, self._run_id = query_id, run_id

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
        """Return at once."""
        return None if timeout is None else True

    def exception(self) -> StreamingQueryException | None:
        """None."""
        return None
