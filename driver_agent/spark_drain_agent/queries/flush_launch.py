"""What the steps on a checkpoint need of the application: its plan, its sink, and the word that it is the right version."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from spark_drain_agent.checkpoint.complete import Application
from spark_drain_agent.checkpoint.journal import Journal
from spark_drain_agent.checkpoint.state_export import export_state
from spark_drain_agent.checkpoint.state_schemas import compared_but_for_nulls
from spark_drain_agent.planning.plan import side_output_mode
from spark_drain_agent.queries.tracked import TrackedQuery, owners_word
from spark_drain_agent.spark_internals.relaunch import leave_state_unchecked
from spark_drain_agent.spark_internals.sinks import discard_once_at, write_once_at
from spark_drain_agent.user_code.batch_marks import DRAIN_PANE_PROPERTY, marked

__all__ = ["RecoveryNeedsPreviousVersionError", "application", "give_up_command"]


class RecoveryNeedsPreviousVersionError(Exception):
    """A flush batch is pending that another version of the application had planned."""


def _launcher(tracked: TrackedQuery, journal: Journal) -> Callable[[str], StreamingQuery]:
    """Return what runs the flush batch of a query on a checkpoint, marked as a drain pane, into the sink that was asked for."""
    internals = tracked.internals

    def launch(checkpoint: str, prepare: Callable[[Any], None] | None = None) -> StreamingQuery:
        captured = tracked.as_started(prepare)
        if journal.windows == "SideOutput":
            mode = side_output_mode(tracked.facts())
            return write_once_at(
                internals, captured, checkpoint, output_mode=mode, path=journal.side_output, data_format=journal.side_output_format
            )
        if journal.windows == "Discard":
            return discard_once_at(internals, captured, checkpoint)
        return internals.launch_once_at(captured, checkpoint)

    def launch_once(checkpoint: str) -> StreamingQuery:
        with marked(internals.context, {**tracked.local_properties(), DRAIN_PANE_PROPERTY: "true"}):
            if tracked.has_executed(journal.batch_id):
                return launch(checkpoint, leave_state_unchecked)
            with compared_but_for_nulls(tracked.checkpoint_files(), journal.work):
                query = launch(checkpoint)
                query.awaitTermination()
            return query

    return launch_once


def give_up_command(tracked: TrackedQuery) -> str:
    """Return the command that gives up the pending flush of a query, for a message."""
    return f"`python -m spark_drain_agent recover {shlex.quote(tracked.location or 'CHECKPOINT')} --discard-pending`"


def _version_check(tracked: TrackedQuery) -> Callable[[Journal], None]:
    """Return the check that this version of the query is the one whose flush batch is pending."""

    def check(journal: Journal) -> None:
        if not tracked.is_version_of(journal.drain_id, journal.fingerprint):
            raise RecoveryNeedsPreviousVersionError(
                f"{tracked.label}: the flush of drain {journal.drain_id} was planned by another version of the application (Spark "
                f"{journal.spark_version}, run {journal.application}) and is not finished: start that version once, "
                "it finishes the drain and stops where the drain's request is still there, else drain it once more; if this is the same "
                f"one, and {owners_word(journal.drain_id)}; or give the flush up with {give_up_command(tracked)}"
            )

    return check


def application(tracked: TrackedQuery, journal: Journal) -> Application:
    """Return what the steps on a query's checkpoint need of this application."""

    def export(journal: Journal) -> None:
        export_state(tracked.internals.session, tracked.checkpoint_files().root, journal.batch_id, journal.state_export)

    return Application(_launcher(tracked, journal), _version_check(tracked), export)
