"""Looking at what is asked of an application, at once and whenever that changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from spark_drain_store import Channel, Snapshot, StoreError
from spark_drain_store.reentrant_event import ReentrantEvent
from spark_drain_store.topics import of_topic

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.clock import monotonic
from spark_drain_agent.milestones import LOG

__all__ = ["Watch"]

_WATCH_SECONDS = 30.0
_RETRY_SECONDS = 2.0
_FIRST_LOOK_SECONDS = 10.0
_OUTAGE_SECONDS = 60.0
_AWAY = "the metadata store does not answer; drains will be seen when it does: %s"


class Watch:
    """The thread that watches the requests.

    Parameters
    ----------
    channel
        The application's messages; closed with the watch.
    handlers
        By topic: called with the requests that there are, also when nothing has changed for a while.
    """

    def __init__(self, channel: Channel, handlers: Mapping[str, Callable[[Snapshot], None]]) -> None:
        self._channel = channel
        self._requests = channel.requests.whole
        self._handlers = handlers
        self._stopped = ReentrantEvent()
        self._thread: threading.Thread | None = None

    @property
    def runs(self) -> bool:
        """Whether it has begun, and found a thread."""
        return self._thread is not None

    def begin(self) -> None:
        """Look once, then keep watching; what a signal handler of the application raises meanwhile is the caller's.

        A store that does not answer delays a drain, not the pipeline: after a few seconds the application goes on.
        """
        looked = threading.Event()
        if self._start(looked) and not looked.wait(_FIRST_LOOK_SECONDS + 1):  # the look itself says more where it has ended
            LOG.warning(_AWAY, f"no answer within {_FIRST_LOOK_SECONDS:g} s")

    def go_on(self) -> None:
        """Begin where there was no thread for it before."""
        if self._thread is None:
            self._start(threading.Event())

    def _start(self, looked: threading.Event) -> bool:
        self._thread = threading.Thread(target=self._run, args=(looked,), name="spark-drain-monitor", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # such as a limit of the number of threads
            self._thread = None
            LOG.warning("no drain of this application is seen until it starts another query: %s", error)
        return self._thread is not None

    def close(self) -> None:
        """Stop watching."""
        self._stopped.set()
        self._channel.close()

    def _consider(self, snapshot: Snapshot) -> None:
        for topic, consider in self._handlers.items():
            consider(of_topic(snapshot, topic))

    def _run(self, looked: threading.Event) -> None:
        with as_agent():
            try:
                version = self._first_look()
            finally:
                looked.set()
            self._watch(version)

    def _first_look(self) -> str:
        """Return the version of what was considered, "" where nothing was."""
        give_up = monotonic() + _FIRST_LOOK_SECONDS
        while not self._stopped.is_set():
            try:
                snapshot = self._requests.read()
                self._consider(snapshot)
            except StoreError as error:
                if monotonic() > give_up:
                    LOG.warning(_AWAY, error)
                    break
                self._stopped.wait(_RETRY_SECONDS / 4)
            except Exception:  # a defect of the agent is not one of the application
                LOG.exception("the drain monitor met an error and continues")
                break
            else:
                return snapshot.version
        return ""

    def _watch(self, version: str) -> None:
        outage, told = _Outage(), ""
        while not self._stopped.is_set():
            try:
                snapshot = self._requests.watch(version, _WATCH_SECONDS)
                if snapshot is None:
                    snapshot = self._requests.read()  # the slow poll, for a watch that silently died
                self._consider(snapshot)
                version = snapshot.version  # what was not considered is seen again
                outage.ends()
                told = ""
            except StoreError as error:
                outage.goes_on(error)
                self._stopped.wait(_RETRY_SECONDS)
            except Exception as error:
                if told != repr(error):  # once, such as that there are no more threads, which may last
                    told = repr(error)
                    LOG.exception("the drain monitor met an error and continues")
                self._stopped.wait(_RETRY_SECONDS)


class _Outage:
    """Says once of each time in which the store does not answer that it does not, if that lasts."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._told = False

    def goes_on(self, error: StoreError) -> None:
        now = monotonic()
        self._since = now if self._since is None else self._since
        if not self._told and now - self._since >= _OUTAGE_SECONDS:
            self._told = True
            LOG.warning("no drain has been seen for %.0f s, since the metadata store does not answer: %s", now - self._since, error)

    def ends(self) -> None:
        if self._told:
            LOG.info("the metadata store answers again")
        self._since, self._told = None, False
