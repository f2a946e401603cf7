"""An application as the reconciler sees it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from spark_drain_operator.storage import watch_cache
from spark_drain_operator.storage.pods import DriverPod, PodName

__all__ = ["Activity", "Application", "ApplicationAdapter", "ApplicationRef", "SuspendNotStoredError", "current_driver"]


class SuspendNotStoredError(Exception):
    """The API server accepted the patch and dropped its field."""


@dataclass(frozen=True)
class ApplicationRef:
    """An application, in the namespace of the object that refers to it."""

    api_version: str
    kind: str
    name: str

    def described(self) -> str:
        """Return ``Kind "name"``."""
        return f"{self.kind} {self.name!r}"


class Activity(Enum):
    """What the application's own operator is about to do with it."""

    STARTING = "starting"
    """A driver is on its way."""
    RUNNING = "running"
    """A driver runs."""
    STOPPING = "stopping"
    """The driver is ending; whether another one comes is not known yet."""
    SUSPENDED = "suspended"
    """No driver will be started until somebody resumes it."""
    ENDED = "ended"
    """No driver will be started until somebody changes its spec."""


@dataclass(frozen=True)
class Application:
    """One observation of an application.

    Parameters
    ----------
    name, uid
        Which object; another one of the same name is another application.
    version, generation
        Its resourceVersion and that of its spec: they guard what is decided on it.
    spec_changed
        When its spec was changed last, as far as its fields' managers tell; None where it never was.
    spec_digest
        Of its spec without what its own operator ignores while it runs, and `suspend`: another one is another version.
    deleted
        Whether it is being deleted, and a finalizer still holds it.
    state
        In the words of its own operator.
    activity
        The same, understood.
    suspend_requested
        Whether its spec says that no driver should run.
    drivers
        Driver pods, also ended ones, newest first.
    suspended_by_others
        Whether somebody else than this operator has suspended it, as far as its fields' managers tell.
    """

    name: str
    uid: str
    version: str
    generation: int
    spec_changed: datetime | None
    spec_digest: str
    deleted: bool
    state: str
    activity: Activity
    suspend_requested: bool
    drivers: tuple[DriverPod, ...]
    suspended_by_others: bool = False

    @property
    def serving_driver(self) -> DriverPod | None:
        """The driver that runs and is meant to go on, if there is exactly one to choose."""
        return next((driver for driver in self.drivers if driver.serving), None)

    @property
    def driver_alive(self) -> bool:
        """Whether any driver may still run a container."""
        return any(driver.alive for driver in self.drivers)

    @property
    def will_not_run(self) -> bool:
        """Whether neither a driver runs nor another one will come by itself."""
        return self.activity in (Activity.SUSPENDED, Activity.ENDED) and not self.driver_alive


def current_driver(application: Application | None) -> DriverPod | None:
    """Return the driver that runs or is about to; a pending one counts, so that its agent finds the request before any query starts."""
    if application is None:
        return None
    return next((driver for driver in application.drivers if driver.alive and not driver.terminating), None)


class ApplicationAdapter(Protocol):
    """One kind of application."""

    api_version: str
    kind: str
    watched: watch_cache.Collection
    """The application objects."""

    def observe(self, namespace: str, name: str, known_runs: Collection[str] = ()) -> Application | None:
        """Return the application as its watches have told it last; None where there is none.

        Its spec is never older than what an alive driver of another run than the known ones was started with.
        """
        ...

    def owner_reference(self, application: Application) -> Mapping[str, Any]:
        """Return the owner reference of objects that go with the application."""
        ...

    def alive(self, namespace: str, run_id: str) -> tuple[PodName, ...]:
        """Return the pods of a run that have not ended now: its driver, and executors, those included that no node has started yet."""
        ...

    def running_executors(self, namespace: str, run_id: str) -> tuple[PodName, ...]:
        """Return the executor pods of a run that have been started and have not ended."""
        ...

    def suspend(self, namespace: str, application: Application) -> None:
        """Ask for the application to be stopped and kept, if its spec still is as it was observed.

        Raises
        ------
        ApiError
            409: it has changed since; the next version may run already.
        SuspendNotStoredError
            The server dropped the request.
        """
        ...

    def resume(self, namespace: str, application: Application) -> bool:
        """Let the application be started again, if its spec still is as it was observed; `ApiError` 409 where it is not.

        Returns whether the server has stored that.
        """
        ...

    def delete(self, namespace: str, application: Application) -> None:
        """Ask for the application to be deleted, if its spec still is as it was observed; raises as `suspend` does."""
        ...

    def left_over(self, namespace: str, name: str, uid: str, *, pending: bool) -> tuple[PodName, ...]:
        """Return the pods of the application, of whatever role and run, that may still run a container.

        Not those of another application of the same name: with afterDrain Delete the next version may already be there.

        Parameters
        ----------
        namespace, name, uid
            Which application.
        pending
            Also those that no node has started yet, which may be so for ever.
        """
        ...
