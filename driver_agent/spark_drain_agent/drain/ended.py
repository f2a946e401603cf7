"""How a drain ends that does not come to its end."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import StreamingQueryException
from spark_drain_store import DrainState

__all__ = ["DrainEndedError", "GivenUp", "SparkStoppedError"]


class DrainEndedError(Exception):
    """The drain ends without being complete.

    Parameters
    ----------
    state
        The report's last state.
    reason
        From `reasons`.
    message
        For people.
    withdrawal
        The report's answer to a withdrawal, or "".
    """

    def __init__(self, state: DrainState, reason: str, message: str, withdrawal: str = "") -> None:
        super().__init__(message)
        self.state, self.reason, self.withdrawal = state, reason, withdrawal

    def adding(self, words: str, reason: str = "") -> DrainEndedError:
        """Return the same end with more to its message, and with another reason where one is given."""
        return DrainEndedError(self.state, reason or self.reason, f"{self}; {words}", self.withdrawal)


class SparkStoppedError(Exception):
    """The SparkContext was stopped: the drain is left to the application's next one."""


@dataclass(frozen=True)
class GivenUp:
    """Why a drain beyond its point of no return was given up although a query was not at its end.

    Parameters
    ----------
    message
        For people.
    cause
        What kept the query from it.
    """

    message: str
    cause: BaseException

    def exception(self) -> StreamingQueryException:
        """Return what the application is told of its queries, as of one whose batch has failed."""
        made = StreamingQueryException(self.message)
        made.__cause__ = self.cause
        return made
