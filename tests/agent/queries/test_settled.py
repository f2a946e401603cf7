"""Whether a batch is in flight, while the query goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.queries.freeze import looked_at, terminate
from spark_drain_agent.spark_internals.live_query import LiveQuery

from tests.agent.folder import files_in


class Busy:
    """A query that goes on while its lock is waited for."""

    def __init__(self, goes_on: Callable[[], None]) -> None:
        self._goes_on = goes_on

    @contextmanager
    def progress_lock(self, _: object = None) -> Iterator[None]:
        self._goes_on()
        yield


@pytest.mark.parametrize(
    ("there", "written", "settled"),
    [
        ([], [], True),
        (["offsets/0"], [], False),
        (["offsets/4", "commits/4", "offsets/5"], [], False),
        (["offsets/4", "commits/4", "offsets/5"], ["commits/5"], True),
        (["offsets/4", "commits/4", "offsets/5"], ["commits/5", "offsets/6"], False),
        (["offsets/4", "commits/4", "offsets/5"], ["commits/5", "offsets/6", "commits/6"], True),
        (["offsets/-2", "offsets/-1", "commits/-1"], [], True),
        (["offsets/-2", "offsets/-1", "commits/-1"], ["offsets/0"], False),
    ],
)
def test_what_is_committed_while_the_lock_is_waited_for_counts(tmp_path: Path, there: list[str], written: list[str], settled: bool) -> None:
    files = files_in(tmp_path)

    def write(names: list[str]) -> None:
        for name in names:
            files.write(name, "v1\n{}")

    write(there)
    with looked_at(cast(LiveQuery, Busy(lambda: write(written))), Checkpoint(files)) as found:
        assert found.settled is settled


@pytest.mark.parametrize(
    ("there", "newest", "settled"),
    [
        (["offsets/5", "commits/5"], 5, True),
        (["offsets/5"], 5, True),  # its commit is known
        (["offsets/5", "offsets/6", "commits/6"], 6, True),
        (["offsets/5", "offsets/6"], 6, False),
        (["offsets/105", "commits/105", "offsets/106"], 106, False),  # it has run on, and those before were removed
        (["offsets/105", "commits/105"], 105, True),
    ],
)
def test_a_batch_that_is_known_to_be_committed_is_where_the_look_begins(
    tmp_path: Path, there: list[str], newest: int, settled: bool
) -> None:
    files = files_in(tmp_path)
    for name in there:
        files.write(name, "v1\n{}")
    with looked_at(cast(LiveQuery, Busy(lambda: None)), Checkpoint(files), committed=5) as found:
        assert (found.newest, found.settled) == (newest, settled)


class InLine(Busy):
    """A query that waits for its lock, to plan its next batch once it gets it, as it then does."""

    def __init__(self, files: CheckpointFiles, planned: list[str]) -> None:
        super().__init__(lambda: None)
        self._files, self._planned = files, planned
        self.thread_alive, self.trigger_active, self.last_batch_id = True, True, 5

    def terminate(self) -> None:
        for name in self._planned:
            self._files.write(name, "v1\n{}")
            self.last_batch_id = 6
        self.thread_alive = False


@pytest.mark.parametrize(
    ("planned", "newest"),
    [([], 5), (["offsets/6"], None), (["offsets/6", "commits/6"], None)],
)
def test_a_batch_that_was_planned_by_a_query_that_was_told_to_end_is_not_passed_over(
    tmp_path: Path, planned: list[str], newest: int | None
) -> None:
    files = files_in(tmp_path)
    for name in ("offsets/5", "commits/5"):
        files.write(name, "v1\n{}")
    live = InLine(files, planned)
    assert terminate(cast(LiveQuery, live), Checkpoint(files), committed=5) == newest
