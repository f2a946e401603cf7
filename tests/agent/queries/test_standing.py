"""Which ended queries a drain still has to do with: a table."""

from __future__ import annotations

import pytest
from spark_drain_agent.queries.standing import Past, Standing, forgotten

RUNS, FAILED, FINISHED, STOPPED, HELD = Standing.RUNS, Standing.FAILED, Standing.FINISHED, Standing.STOPPED, Standing.HELD


@pytest.mark.parametrize(
    ("queries", "kept"),
    [
        ([], []),
        ([(RUNS, "a", "x"), (RUNS, "b", "y")], [0, 1]),
        ([(FAILED, "a", "x"), (RUNS, "a", "y")], [1]),
        ([(FAILED, "a", "x"), (RUNS, "b", "y")], [0, 1]),
        ([(FAILED, "", "x"), (RUNS, "", "y")], [0, 1]),
        ([(FAILED, "", "x"), (RUNS, "", "x")], [1]),
        ([(FAILED, "a", None)], [0]),
        ([(FAILED, "a", None), (RUNS, "a", None)], [1]),
        ([(FINISHED, "a", "x"), (FINISHED, "a", "y"), (FINISHED, "a", "z")], [0, 1, 2]),
        ([(FINISHED, "", "x"), (FINISHED, "", "x"), (RUNS, "", "x")], [2]),
        ([(FINISHED, "", "x"), (FINISHED, "", "y")], [0, 1]),
        ([(FINISHED, "a", None), (FINISHED, "", None), (RUNS, "", None)], [2]),
        ([(FINISHED, "a", "x"), (FAILED, "a", "x")], [1]),
        ([(STOPPED, "a", "x")], [0]),
        ([(STOPPED, "a", "x"), (RUNS, "a", "y")], [1]),
        ([(RUNS, "a", "x"), (RUNS, "a", "y")], [0, 1]),  # in two sessions
        ([(HELD, "a", "x"), (HELD, "a", "x")], [1]),
    ],
)
def test_what_is_kept(queries: list[tuple[Standing, str, str | None]], kept: list[int]) -> None:
    over = forgotten([Past(*query) for query in queries])
    assert [index for index, is_over in enumerate(over) if not is_over] == kept


def test_a_failure_with_a_temporary_checkpoint_matters_until_it_is_started_again_or_acknowledged() -> None:
    failed, told = Past(FAILED, "", None, digest="x"), Past(FAILED, "a", None, acknowledged=True)
    assert forgotten([failed, Past(RUNS, "", None, digest="x")]) == [True, False]
    assert forgotten([failed, Past(RUNS, "", None, digest="y")]) == [False, False]
    assert forgotten([Past(FAILED, "", None), Past(RUNS, "", None)]) == [False, False]
    assert forgotten([told]) == [True]
    assert forgotten([Past(FAILED, "a", "x", acknowledged=True)]) == [False], "what it had read is in its checkpoint"


def test_what_is_kept_of_many() -> None:
    """An application may start one short query after the other, each with a checkpoint of its own."""
    finished = [Past(FINISHED, "", f"x{number}", keeps_state=number % 50 == 0) for number in range(100)]
    assert [index for index, is_over in enumerate(forgotten(finished)) if not is_over] == [0, 50, 99]
    open_windows = [Past(FINISHED, "", f"x{number}") for number in range(200)]
    without = [Past(FINISHED, "", f"y{number}", keeps_state=False) for number in range(200)]
    assert forgotten([*open_windows, *without]) == [True] * 100 + [False] * 100 + [True] * 199 + [False]
    stopped = [Past(STOPPED, "", f"x{number}") for number in range(200)]
    assert forgotten(stopped) == [True] * 100 + [False] * 100
    assert forgotten([stopped[0], *(Past(RUNS, "", f"y{number}") for number in range(200))]) == [False] * 201, "what runs does not hide it"
