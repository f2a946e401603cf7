"""The session in which the agent starts a query of the application once more, from a thread and on a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext

from spark_drain_agent.spark_internals.jvm_thread import in_one_jvm_thread
from spark_drain_agent.spark_internals.open_calls import afterwards
from spark_drain_agent.spark_internals.reflection import private_field

__all__ = ["RETAINED", "active", "leave_state_unchecked", "prepare_relaunch", "share_catalogs"]

RETAINED = "spark.sql.streaming.minBatchesToRetain"
"""Conf: of so many batches Spark keeps the state. With 1, RocksDB's state before the flush goes once the flush is committed (measured)."""

_CHECK = "spark.sql.streaming.stateStore.stateSchemaCheck"
_DELTA = "spark.databricks.delta.streaming."
_LIFTED = {f"{_DELTA}allowSchemaLocationOutsideCheckpointLocation": "true", f"{_DELTA}schemaTracking.metadataPathCheck.enabled": "false"}
"""Delta wants a source's schema log below the checkpoint that it was made for; a work copy of that checkpoint is another folder."""


def prepare_relaunch(session: Any, application: Any, *, listeners: bool) -> None:
    """Make a session of the JVM, which is none of the application's, ready to start a query of the application.

    Parameters
    ----------
    session
        For the start.
    application
        The application's session.
    listeners
        Whether its listeners are told of the query.
    """
    conf = session.sessionState().conf()
    for name, value in _LIFTED.items():
        if not conf.contains(name):
            conf.setConfString(name, value)
    conf.setConfString(RETAINED, str(max(2, int(conf.getConfString(RETAINED, "100")))))
    told = list(session.streams().listListeners())
    for listener in application.streams().listListeners() if listeners else ():
        if listener not in told:
            session.streams().addListener(listener)


def leave_state_unchecked(session: Any) -> None:
    """Have Spark not compare the schema of state with that of before, in a JVM session that is not the application's.

    A batch without input may plan a column as one that may be null, which in every other batch is found to be never null: a constant over
    an empty relation is calculated before its nullability is looked at. The rows are the same, and Spark refuses the schema.
    """
    session.sessionState().conf().setConfString(_CHECK, "false")


def share_catalogs(session: Any, application: Any) -> None:
    """Let a session of the JVM find tables by the application's own catalogs (`CatalogManager`): Iceberg's keep what they have found.

    The application would not see through its own what was written to a table that another one has found.
    """
    own, loaded = (private_field(each.sessionState().catalogManager(), "catalogs") for each in (session, application))
    getattr(own, "$plus$plus$eq")(loaded)


@contextmanager
def active(context: SparkContext, sessions: Any, session: Any) -> Iterator[None]:
    """Make a session the calling thread's active one: without any, Delta's catalog does not find the table of ``toTable`` again.

    Parameters
    ----------
    context
        Of this process.
    sessions
        Companion of Spark's session class.
    session
        The JVM's session.
    """
    with in_one_jvm_thread(context):
        before = sessions.getActiveSession()
        sessions.setActiveSession(session)
        go_back = (lambda: sessions.setActiveSession(before.get())) if before.isDefined() else sessions.clearActiveSession
        with afterwards(go_back):
            yield
