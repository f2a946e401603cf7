"""Bringing the agent into a driver: by hand with `attach`, or for every session that the launched script makes."""

from __future__ import annotations

import atexit
import os
import threading
from importlib.machinery import PathFinder
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from spark_drain_store import Channel, absolute_location, open_channel

from spark_drain_agent.drain.identity import identify, store_location
from spark_drain_agent.driver.agent import Agent
from spark_drain_agent.driver.connect import CLASSIC_ONLY, ConnectRefusal
from spark_drain_agent.driver.pyspark_hooks import install
from spark_drain_agent.driver.signals import take_note_of_signals
from spark_drain_agent.milestones import LOG
from spark_drain_agent.spark_internals.session import (
    SparkInternals,
    active_context,
    classic,
    connect_server_here,
    is_stopped,
    submitted_conf,
)

__all__ = ["attach", "current_agent", "install_hooks", "pyspark_hidden"]

_lock = threading.RLock()  # a signal handler may ask for a session while its own thread attaches
_agent: Agent | None = None
_refusal: ConnectRefusal | None = None


def current_agent() -> Agent | None:
    """Return this process' agent, or None before a session was made."""
    return _agent


def attach(spark: SparkSession, metadata_store: str | None = None) -> None:
    """Let the agent see and drain the queries of an application; call it before the first query is started.

    Parameters
    ----------
    spark
        The application's session. Later calls, also with other sessions, change nothing.
    metadata_store
        ``file:DIR`` or ``configmap:NAMESPACE/APPLICATION``; by default the conf ``spark.sparkdrain.store``, or on Kubernetes what
        kubeflow's Spark operator says.

    Raises
    ------
    TypeError
        It is not a session, or one of Spark Connect, whose queries run in the server; or the store is no text.
    StoreError
        The location is malformed.
    """
    if not hasattr(type(spark), "readStream"):
        raise TypeError(f"attach: {spark!r} is not a SparkSession")
    if not classic(spark):
        raise TypeError(f"the drain agent cannot attach: {CLASSIC_ONLY}")
    if metadata_store is not None and not isinstance(metadata_store, str):
        raise TypeError(f"attach: metadata_store {metadata_store!r} is not a text like 'file:DIR' or 'configmap:NAMESPACE/APPLICATION'")
    install_hooks(metadata_store)
    _attach(spark, metadata_store)


def install_hooks(metadata_store: str | None) -> None:
    """Attach to the first session that is made from now on."""
    location = absolute_location(metadata_store) if metadata_store else None  # a program may go to its own folder before it makes a session
    take_note_of_signals()
    install(lambda session: _meet(session, location), current_agent)


def _meet(session: SparkSession, metadata_store: str | None) -> Agent | None:
    if classic(session) and not connect_server_here():
        return None if is_stopped(session.sparkContext) else _attach(session, metadata_store)
    _refuse(metadata_store)
    return None


def _refuse(metadata_store: str | None) -> None:
    """Answer the drains of an application of Spark Connect, which otherwise is left alone."""
    global _refusal  # noqa: PLW0603  # as there is one agent per process
    with _lock:
        context = active_context()  # of the server, where it runs in this process
        run_id = context.applicationId if context is not None else os.environ.get("SPARK_APPLICATION_ID", "")
        if _refusal is not None and _refusal.run_id == run_id:
            return
        location = store_location(submitted_conf if context is None else context.getConf().get, metadata_store)
        for earlier in (_agent, _refusal):
            if earlier is not None:
                earlier.close()
        _refusal = ConnectRefusal(open_channel(location) if location else Channel.in_memory(), identify(run_id, pyspark.__version__))
        _refusal.begin()
        LOG.warning("no drain can be carried out: %s", CLASSIC_ONLY)


def _attach(spark: SparkSession, metadata_store: str | None) -> Agent | None:
    global _agent  # noqa: PLW0603  # one agent per driver process, like SparkContext itself
    with _lock:
        internals = SparkInternals(spark)
        run_id = internals.application_id
        if _attached(run_id):
            return _agent
        location = store_location(internals.conf, metadata_store)
        if location is None:
            LOG.warning(
                "no metadata store: this application cannot be asked to drain; give --metadata-store, or set spark.sparkdrain.store"
            )
        channel = open_channel(location) if location else Channel.in_memory()
        made = Agent(internals, channel, identify(run_id, internals.spark_version))
        if _attached(run_id):  # by a signal handler, in the middle of this
            channel.close()
            return _agent
        first = _agent is None
        if _agent is not None:
            _agent.close()  # its SparkContext was stopped and another one made in the same process
        _agent = made
        try:
            _agent.begin()
        except BaseException:  # of a signal handler
            if not made.watches:
                _agent = None
            raise
        LOG.info("drain agent attached to run %s, metadata store %s", run_id, location)
        if first:
            atexit.register(_hold_at_exit)
            if other := pyspark_hidden():
                LOG.warning(
                    "the program would have found pyspark in %s, and runs with that in %s, which was imported with the agent: put the "
                    "former on PYTHONPATH, or call spark_drain_agent.attach(spark) instead of starting the program through the agent",
                    other,
                    Path(pyspark.__file__).parent,
                )
        return _agent


def _attached(run_id: str) -> bool:
    """Return whether the agent is that of this run; on Kubernetes in cluster mode each SparkContext of a driver has the same id."""
    return _agent is not None and _agent.identity.run_id == run_id and not _agent.internals.stop_returned


def pyspark_hidden() -> str:
    """Return the folder of a pyspark that the program has put before the one that is imported, as findspark does, or ""."""
    found = PathFinder.find_spec("pyspark")
    if found is None or found.origin is None or Path(found.origin).resolve() == Path(pyspark.__file__).resolve():
        return ""
    return str(Path(found.origin).parent)


def _hold_at_exit() -> None:
    if _agent is not None:
        _agent.hold_exit()
