"""How a drain ends that does not come to its end."""

from __future__ import annotations

from spark_drain_store import DrainState

__all__ = ["DrainEndedError", "SparkStoppedError"]


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


class SparkStoppedError(Exception):
    """The SparkContext was stopped before the point of no return: the drain is left to the application's next one."""
