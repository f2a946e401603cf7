"""The drain notification as it now is: the monitor brings its changes, the drain asks whether it is still wanted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from spark_drain_store import DrainNotification, DrainOptions, DrainState, UnsupportedOptionError, WithdrawalAnswer, reasons
from spark_drain_store.reentrant_event import ReentrantEvent

from spark_drain_agent.clock import utc_now
from spark_drain_agent.drain.ended import DrainEndedError, SparkStoppedError

__all__ = ["Request"]


class Request:
    """What was asked for, and whether it still is.

    Parameters
    ----------
    notification
        The drain notification as it was first seen.
    spark_stopped
        Returns whether the SparkContext was stopped.
    """

    def __init__(self, notification: DrainNotification, spark_stopped: Callable[[], bool]) -> None:
        self._notification = notification
        self._spark_stopped = spark_stopped
        self.gone = ReentrantEvent()
        self.overtaken = False
        """Whether the application goes on with another SparkContext, whose drain it is now."""
        self._over = ReentrantEvent()

    @property
    def drain_id(self) -> str:
        """The drain."""
        return self._notification.drain_id

    @property
    def mode(self) -> str:
        """What kind of drain is asked for."""
        return self._notification.mode

    @property
    def approved(self) -> bool:
        """Whether a drain that waits for approval has it."""
        return self._notification.approved

    @property
    def only_planned(self) -> bool:
        """Whether nothing may be touched: a plan is all that is asked for, or approval is awaited."""
        execution = self._notification.options.get("execution")
        return execution == "PlanOnly" or (execution == "AfterApproval" and not self.approved)

    @property
    def withdrawn(self) -> bool:
        """Whether the notification says that the drain is not wanted any more."""
        return self._notification.withdrawn

    @property
    def deadline(self) -> datetime | None:
        """Until when the drain has to be past its point of no return; None: no limit."""
        return self._notification.deadline

    def update(self, notification: DrainNotification | None) -> None:
        """Take note of the notification's present contents; None when it was removed."""
        if notification is None:
            self.gone.set()
            self._over.set()
        else:
            self._notification = notification

    def overtake(self) -> None:
        """Take note that the application goes on with another SparkContext."""
        self.overtaken = True
        self._over.set()

    def wait_until_gone(self, seconds: float | None = None) -> bool:
        """Return whether the notification was removed, after so many seconds (None: no limit) at most.

        Raises
        ------
        SparkStoppedError
            The application goes on with another SparkContext.
        """
        self._over.wait(seconds)
        if self.overtaken:
            raise SparkStoppedError("its SparkContext was stopped")
        return self.gone.is_set()

    def wait_with_spark(self, seconds: float) -> bool:
        """Do as `wait_until_gone`, for who can do nothing more in a SparkContext that was stopped.

        Raises
        ------
        SparkStoppedError
            It was stopped, by the application or by itself.
        """
        if self._spark_stopped():
            raise SparkStoppedError("its SparkContext was stopped")
        return self.wait_until_gone(seconds)

    def options(self) -> DrainOptions:
        """Return the options; raises `DrainEndedError` (Rejected) for what cannot be understood."""
        try:
            return self._notification.parsed_options()
        except UnsupportedOptionError as error:
            raise DrainEndedError(DrainState.REJECTED, reasons.UNSUPPORTED_OPTION, str(error)) from error

    def keep_waiting(self) -> None:
        """Give up a drain that is not yet past the point of no return.

        Raises
        ------
        DrainEndedError
            It is no longer wanted. Who withdraws it for its deadline learns of the deadline.
        SparkStoppedError
            Nothing is left in this SparkContext that could be drained.
        """
        withdrawn, deadline = self.gone.is_set() or self._notification.withdrawn, self.deadline
        if deadline is not None and utc_now() >= deadline:
            raise DrainEndedError(
                DrainState.FAILED,
                reasons.DEADLINE_EXCEEDED,
                f"the deadline {deadline.isoformat()} passed before the point of no return: the queries run on",
                withdrawal=WithdrawalAnswer.WITHDRAWN if withdrawn else "",
            )
        if withdrawn:
            raise DrainEndedError(
                DrainState.WITHDRAWN,
                reasons.WITHDRAWN,
                "withdrawn before the point of no return: the queries run on",
                withdrawal=WithdrawalAnswer.WITHDRAWN,
            )
        if self._spark_stopped():
            raise SparkStoppedError
