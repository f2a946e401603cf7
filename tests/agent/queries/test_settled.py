"""Whether a batch is in flight, while the query goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.queries.freeze import looked_at
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
