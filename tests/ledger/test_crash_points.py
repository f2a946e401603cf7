"""kill -9 of a real driver at every point of a drain, and at random moments; then the application restarts under the agent, and without it.

With the agent the drain is finished and an incompatible version reads on: each event is counted exactly once. Plain Spark, which
knows nothing of the drain, must fail loudly or be exact, never lose silently; and after it, the agent still ends what was begun.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyarrow import parquet  # type: ignore[import-untyped]  # pyarrow ships no types

from tests.ledger.harness import EXACT, FILES, Crash, Ledger, Restarter, copy, write_events

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

FENCE = "FENCED_BY_SPARK_DRAIN"
MISSING = "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY"
# Each driver has as many queries as there are points: when it is killed, every one of them is at another point.
# A query whose drain is held where the query itself goes on would not stay there, so such a driver has one query only.
FLUSHED_IN_THE_RUNNING_QUERY = [
    "fenced+before-sink-write+after-sink-write+prepared",
    "watermark-raised",
    "running-flush-committed+logs-copied+state-moved+flushed",
    "logs-cleared+logs-seeded",
    "state-cleared+seeded+fence-lifted",
]
FLUSHED_ON_THE_WORK_COPY = ["prepared+fenced+logs-copied+state-moved", "flush-logged+before-sink-write+after-sink-write+flush-committed"]
OF_THE_APPLICATION = ["settled", "committing", "reporting", "drained"]
UNFENCED = {"prepared", "fence-lifted", *OF_THE_APPLICATION}
POINTS = [Crash("Auto", when) for when in [*FLUSHED_IN_THE_RUNNING_QUERY, *OF_THE_APPLICATION]]
POINTS += [Crash("WorkCopy", when) for when in FLUSHED_ON_THE_WORK_COPY]

OUTPUTS = (
    *("incompleteWindows.policy=SideOutput", "incompleteWindows.sideOutput.path={base}/side", "incompleteWindows.sideOutput.format=json"),
    "stateExport.path={base}/export",
)
WRITING = [
    Crash("Auto", when, OUTPUTS)
    for when in ("state-exported+fenced>export/**/_temporary", "side-output-written+flush-logged>side/**/_temporary")
]

MOMENTS = [Crash(("Auto", "WorkCopy")[number % 2], f"{random.Random(number).uniform(0, 1.6):.2f}") for number in range(20)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """All of the input but what comes in after the crash."""
    folder = tmp_path / "input"
    write_events(folder, range(FILES - 1))
    return folder


@pytest.fixture
def base(crash: Crash, source: Path, tmp_path: Path) -> Path:
    """The folder that a crash left; there is more to read then, without which plain Spark would not yet look for the state."""
    killed = crash.happen(source, tmp_path / "killed")
    write_events(source, [FILES - 1])
    return killed


_NEXT_TO_ANOTHER = (
    "settled",
    "committing",
    "drained",
    "watermark-raised",
    "logs-cleared+logs-seeded",
    "reporting",
    "prepared+fenced+logs-copied+state-moved",
)
"""Points that differ by little from one that is in every run, here or in `test_ways_out`."""


@pytest.mark.parametrize(
    "crash", [pytest.param(each, marks=[pytest.mark.soak] * (each.when in _NEXT_TO_ANOTHER)) for each in POINTS], ids=str
)
def test_killed_at(crash: Crash, base: Path, source: Path, restarter: Restarter) -> None:
    assert len(fenced(base, crash)) == sum(point not in UNFENCED for point in crash.when.split("+"))
    plain = copy(base, "plain")
    _lose_a_fence(crash, base)
    _check_restart_with_the_agent(crash, base, source, restarter)
    _check_plain_restart(crash, plain, source, restarter)


def _lose_a_fence(crash: Crash, base: Path) -> None:
    """Leave one checkpoint as a kill leaves it on a filesystem that deletes the metadata before the fence takes its place."""
    points = crash.when.split("+")
    if crash.flush == "WorkCopy" and "fenced" in points:
        (base / "checkpoints" / crash.queries[points.index("fenced")] / "metadata").unlink()


@pytest.mark.parametrize("crash", [pytest.param(WRITING[0], marks=pytest.mark.soak), WRITING[1]], ids=str)
def test_killed_while_a_drain_writes(crash: Crash, base: Path, source: Path, restarter: Restarter) -> None:
    """The side output and the exported state are written anew, whole, and each is there once."""
    assert fenced(base, crash) == set(crash.queries)
    plain = copy(base, "plain")
    _check_restart_with_the_agent(crash, base, source, restarter)
    assert not list(base.rglob("_temporary"))
    for query in crash.queries:
        ledger = Ledger(base, query=query)
        assert not any(row["drain_pane"] for row in ledger.written if row["version"] == "v1")
        state = parquet.read_table(base / "export" / query / "0-stateStoreSave/default").to_pylist()
        assert sum(row["value"]["count"] for row in state) == sum(row["count"] for row in ledger.aside) > 0
    base.rename(base.with_name("ended"))
    plain.rename(base)  # a journal names the outputs by their whole paths
    _check_plain_restart(crash, base, source, restarter)


@pytest.mark.soak
@pytest.mark.parametrize("crash", MOMENTS, ids=str)
def test_killed_at_a_random_moment(crash: Crash, base: Path, source: Path, restarter: Restarter) -> None:
    """Spark refuses every fence for the same reason, as the points above show: here, plain Spark starts what has none."""
    plain = None if fenced(base, crash) else copy(base, "plain")
    _check_restart_with_the_agent(crash, base, source, restarter)
    if plain is not None:
        _check_plain_restart(crash, plain, source, restarter)


def fenced(base: Path, crash: Crash) -> set[str]:
    """Return the queries whose checkpoints are fenced."""
    return {query for query in crash.queries if FENCE in (base / "checkpoints" / query / "metadata").read_text()}


def stateless(base: Path, crash: Crash) -> set[str]:
    """Return the queries of a new generation, whose state is yet to be made."""
    return {query for query in crash.queries if not (base / "checkpoints" / query / "state").exists()}


def _check_restart_with_the_agent(crash: Crash, base: Path, source: Path, restarter: Restarter) -> None:
    finished = restarter.run("agent", "v1", source, base, "finish")
    assert finished["outcome"] == "ran", finished["detail"]
    reported = {query["name"]: [operator["name"] for operator in query["operators"]] for query in finished["drain"]["queries"]}
    assert reported == {query: ["Aggregate"] for query in crash.queries}, "what the earlier run has planned is not told"
    resumed = restarter.run("agent", "v2", source, base, "consume")
    assert resumed["outcome"] == "ran", resumed["detail"]
    for query in crash.queries:
        ledger = Ledger(base, query=query)
        assert ledger.verdict() == EXACT
        assert ledger.drain_panes() > 0


def _check_plain_restart(crash: Crash, base: Path, source: Path, restarter: Restarter) -> None:
    """Plain Spark refuses the queries that are fenced or reseeded, and no others; later, the agent makes all of them exact."""
    refused = fenced(base, crash) | stateless(base, crash)
    restarted = restarter.run("plain", "v1", source, base, "consume")
    assert restarted["outcome"] == ("failed" if refused else "ran"), restarted["detail"]
    if refused:
        failures = json.loads(restarted["detail"])
        assert failures.keys() == refused
        assert all(FENCE in failure or MISSING in failure for failure in failures.values())
    resumed = restarter.run("agent", "v1", source, base, "consume")
    assert resumed["outcome"] == "ran", resumed["detail"]
    for query in crash.queries:
        assert Ledger(base, query=query).verdict() == EXACT
