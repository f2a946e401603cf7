"""Which queries a drain is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spark_drain_store import DrainOptions, DrainState, reasons

from spark_drain_agent.drain.ended import DrainEndedError
from spark_drain_agent.drain.host import DrainHost
from spark_drain_agent.planning.plan import PlanRejectedError
from spark_drain_agent.queries.standing import MENTIONED, Standing
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.errors import cause_first

__all__ = ["Selection", "StartsInFlightError", "check_all_seen", "select"]


@dataclass(frozen=True)
class Selection:
    """The queries of the application, as one drain sees them.

    Parameters
    ----------
    targets
        Those to drain.
    beside
        Those that run on beside them.
    left_alone
        Sentences that name those that are left as they are.
    """

    targets: tuple[TrackedQuery, ...]
    beside: tuple[TrackedQuery, ...]
    left_alone: tuple[str, ...]

    @property
    def candidates(self) -> tuple[TrackedQuery, ...]:
        """All that could be drained."""
        return (*self.targets, *self.beside)


def select(host: DrainHost, options: DrainOptions) -> Selection:
    """Sort the application's queries into those to drain and the others.

    To drain are the running ones and the bounded ones that have run to their ends, or those of them that the options name. One of these
    that failed fails the drain; a failed one that was not asked for changes nothing. One that the application had stopped is left as it
    is, and named, and so is one with whose checkpoint another run has gone on.
    """
    if options.queries is None:
        check_all_seen(host)
    host.registry.prune()
    standing = [(tracked, tracked.standing()) for tracked in host.registry.all()]
    standing = [(tracked, state) for tracked, state in standing if state is not Standing.FAILED or not host.held.made_good(tracked)]
    gone_on = [tracked for tracked, state in standing if state is Standing.FINISHED and tracked.gone_on]
    unfinished = _unfinished(host, options, standing)
    there = [item for item in standing if item[1] not in (Standing.HELD, Standing.STOPPED) and item[0] not in (*gone_on, *unfinished)]
    _check_known(options, {tracked.captured.query_name: state is not Standing.FAILED for tracked, state in there})
    for tracked, state in there:
        if state is Standing.FAILED and _is_asked_for(options, tracked):
            raise DrainEndedError(
                DrainState.FAILED,
                reasons.QUERY_FAILED,
                f"{tracked.label} has failed: {cause_first(tracked.error)}; so what it read is not all processed: start it again "
                "before the drain, or drain the others by name, with `queries` and afterDrain 'Keep'",
            )
    found = [tracked for tracked, state in there if state is not Standing.FAILED]
    stopped = [tracked for tracked, state in standing if state is Standing.STOPPED]
    finished = [tracked for tracked, state in standing if state is Standing.FINISHED and tracked.location and tracked.keeps_state]
    return Selection(
        targets=tuple(tracked for tracked in found if _is_asked_for(options, tracked)),
        beside=tuple(tracked for tracked in found if not _is_asked_for(options, tracked)),
        left_alone=tuple(_left_alone(host, stopped, gone_on, unfinished, len(finished))) if options.queries is None else (),
    )


def _unfinished(host: DrainHost, options: DrainOptions, standing: Sequence[tuple[TrackedQuery, Standing]]) -> list[TrackedQuery]:
    """Return the queries that an earlier drain has left in its middle, which mode Stop leaves as they are.

    Raises
    ------
    DrainEndedError
        One of them is to be drained: its next start ends the earlier drain, and only then there is something to drain.
    """
    given_up = [tracked for tracked, state in standing if state is not Standing.FAILED and host.held.given_up(tracked)]
    known = {tracked.key: tracked for tracked in (*given_up, *host.registry.refused())}
    found = [tracked for tracked in known.values() if _is_asked_for(options, tracked) and not tracked.is_drained]
    if found and options.mode != "Stop":
        raise DrainEndedError(
            DrainState.FAILED,
            reasons.QUERY_FAILED,
            f"an earlier drain of {_labels(found)} was given up in the middle, and what is open there was not emitted: start the same "
            "version again, which ends that drain, or drain the others by name, with `queries` and afterDrain 'Keep'",
        )
    return found


def _left_alone(
    host: DrainHost,
    stopped: Sequence[TrackedQuery],
    gone_on: Sequence[TrackedQuery],
    unfinished: Sequence[TrackedQuery],
    finished: int,
) -> Iterator[str]:
    kept_open = [tracked for tracked in stopped if host.held.kept_open(tracked)]
    if unfinished:
        yield f"an earlier drain of {_labels(unfinished)} was given up in the middle: its next start ends that drain"
    if by_application := [tracked for tracked in stopped if not host.held.ended(tracked)]:
        yield f"the application had stopped {_labels(by_application)} itself: what is open there was not emitted"
    if kept_open:
        yield f"an earlier drain with mode 'Stop' has ended {_labels(kept_open)}: what is open there was not emitted"
    if flushed := [tracked for tracked in stopped if host.held.made_good(tracked) and tracked not in kept_open]:
        yield f"an earlier drain has ended {_labels(flushed)}: what has come since was not read"
    if len(stopped) >= MENTIONED:
        yield f"of queries that have ended so the last {MENTIONED} are remembered: there may have been others before"
    if finished >= MENTIONED:
        yield f"of bounded queries with state the last {MENTIONED} are drained: what is open in others before was not emitted"
    if gone_on:
        yield f"another run has gone on with the checkpoint of {_labels(gone_on)}, and has what is open there"


def _labels(queries: Sequence[TrackedQuery]) -> str:
    return ", ".join(tracked.label for tracked in queries)


def _is_asked_for(options: DrainOptions, tracked: TrackedQuery) -> bool:
    return options.queries is None or tracked.captured.query_name in options.queries


def _check_known(options: DrainOptions, run_by_name: dict[str, bool]) -> None:
    """Refuse names of no query; of one that has failed something else is said."""
    unknown = [name for name in options.queries or () if name not in run_by_name]
    if unknown:
        running = sorted(name for name, runs in run_by_name.items() if runs)
        raise PlanRejectedError(
            reasons.UNKNOWN_QUERY, f"queries {', '.join(unknown)} are not running; running are {', '.join(running) or 'none'}"
        )


class StartsInFlightError(Exception):
    """Queries run of which the agent may only not know yet, since others are being started."""


def check_all_seen(host: DrainHost) -> None:
    """Refuse to drain an application of whose queries the agent has seen only a part.

    Raises
    ------
    PlanRejectedError
        A query was started out of the agent's sight.
    StartsInFlightError
        What seems to be one may be a start in flight.
    """
    seen = {item.run_id for item in host.registry.all()}  # also before: one that ends now may be forgotten after
    active = host.internals.active_queries()  # before what follows: one of them that is not in flight any more is in the registry
    in_flight = host.gate.starts_in_flight()
    seen |= {item.run_id for item in host.registry.all()}
    unseen = [name for run_id, name in active.items() if run_id not in seen]
    if unseen and in_flight:
        raise StartsInFlightError
    if unseen:
        names = ", ".join(unseen)
        raise PlanRejectedError(
            reasons.UNSUPPORTED_QUERY,
            f"the agent has not seen the start of queries {names}: run the application under `python -m spark_drain_agent`, or call "
            "attach(spark) before starting them; one that Java code starts, or whose start was interrupted before the agent knew it, "
            "cannot be drained: stop it before the drain",
        )
