"""A store that refuses, breaks off, or does not answer requests in the middle of a drain: it is tried again, nothing is lost or doubled."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_store import DrainState

from tests.s3.moments import MANAGERS, Setting
from tests.s3.table import Table, counted
from tests.semantics.warm import Application, Event, Input, read_all
from tests.support.own_jvm import session_confs
from tests.support.s3_proxy import CHANGES, READS, Fault
from tests.support.s3_server import IMPATIENT, PATIENCE_SECONDS, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(7200)]

LOG = logging.getLogger("matrix")

_SILENT = PATIENCE_SECONDS + 1
FAULTS: dict[str, dict[str, Any]] = {
    "forbidden": {"status": 403},
    "broken": {"status": 500},
    "cut": {"status": 0},
    "done-and-cut": {"status": 0, "carried_out": True},
    "silent": {"hold": _SILENT},
    "done-and-silent": {"hold": _SILENT, "carried_out": True},
}
_LEAST = 15
"""A drain makes more requests of each kind."""
_READS, _AGAIN = 75, 2
"""A drain reads less than three times as often. Not without an end: a flush that begins anew each time reads more than once as often."""
_MOST_DRAINS = 11
"""Of one query: each has more to copy than the one before, as Spark keeps a hundred batches."""
_IN_EVERY_RUN = {
    "Auto": [("forbidden", "change", 3), ("cut", "read", 12)],
    "WorkCopy": [("broken", "change", 9), ("done-and-silent", "change", 2)],
}
KINDS = {"change": CHANGES, "read": READS}
_PAIRS = {("Reseed", "Auto"), ("Continue", "WorkCopy")}
_MOST_ASKED = 6
_CARRIED_OUT = frozenset({"done-and-cut", "done-and-silent"})
"""What makes a difference only where a request changes something."""


@dataclass(frozen=True)
class Case:
    """What goes wrong in the drains of one query, in turn: with each request of a kind, one drain after the other.

    Each failure meets each request that changes something, with Spark's default file manager, in both ways to flush and with both
    policies; those that take as long as a time-out, the other pairs of the two, and the other manager have the failures in turn. So has
    what only reads, where a drain meets several; over the four pairs each read has each of them. The other manager writes in another way,
    and reads in the same. With Keep, which leaves a checkpoint that nothing reads on from, a query is drained once, and has the failures in
    turn.
    """

    setting: Setting
    kind: str
    failures: tuple[str, ...]

    def __str__(self) -> str:
        return "-".join((str(self.setting), self.kind, *self.failures))

    @property
    def most_drains(self) -> int:
        """How often one query is drained."""
        return 1 if self.setting.policy == "Keep" else _MOST_DRAINS

    def fault(self, failure: str, number: int) -> Fault:
        """Return what goes wrong at a request of that number."""
        again = _AGAIN if self.kind == "read" else 0
        return Fault(KINDS[self.kind], nth=number, times=1, again=again, every=_READS, **FAULTS[failure])


def _cases() -> Iterator[Case]:
    pairs = list(product(("Reseed", "Continue"), ("Auto", "WorkCopy")))
    for manager, (turn, (policy, flush)), kind in product(MANAGERS, enumerate(pairs), KINDS):
        if manager != "default" and kind == "read":
            continue
        setting = Setting(flush, policy, manager, IMPATIENT)
        failures = _failures_of(kind)
        slow = tuple(failure for failure in failures if "silent" in failure)
        apart = [(failure,) for failure in failures if failure not in slow] + [slow]
        whole = manager == "default" and kind == "change" and (policy, flush) in _PAIRS
        yield from (Case(setting, kind, each) for each in (apart if whole else [(*failures[turn:], *failures[:turn])]))
    for flush, kind in product(("Auto", "WorkCopy"), KINDS):
        yield Case(Setting(flush, "Keep", bucket=IMPATIENT), kind, _failures_of(kind))


def _failures_of(kind: str) -> tuple[str, ...]:
    return tuple(failure for failure in FAULTS if kind == "change" or failure not in _CARRIED_OUT)


class Generations:
    """A query that is drained again and again, each time by a version that reads on where the last one has ended."""

    def __init__(self, setting: Setting, spark: SparkSession, s3: S3Server, folder: Path) -> None:
        self._setting, self._spark, self._s3 = setting, spark, s3
        self._uri, self._events, self._table = f"s3a://{setting.bucket}/{uuid4()}", Input(spark, folder), Table()
        self._number = 0

    @property
    def drains(self) -> int:
        """How often it was drained."""
        return self._number

    def drained(self, fault: Fault) -> bool:
        """Read on, and drain while something goes wrong; return whether it did."""
        start, self._number = 100 * self._number, self._number + 1
        self._events.add([Event(start + number, "abc"[number % 3], start + 4 * number) for number in range(12)])
        app = Application(self._spark, self._uri)
        try:
            keys = ["key"] if self._setting.policy == "Continue" or self._number % 2 else []
            read_all(app.start(counted(self._events, *keys), self._table))
            self._s3.proxy.fault = fault
            for _ in range(_MOST_ASKED):
                if self._asked(app):
                    break
        finally:
            self._s3.proxy.fault = None
            app.close()
        assert self._table.ids == Counter(100 * generation + number for generation in range(self._number) for number in range(12))
        return fault.happened

    def _asked(self, app: Application) -> bool:
        """Drain; return whether it was, and not given up before it had begun."""
        with app.user_waits():
            drain_id = app.ask(checkpoint__policy=self._setting.policy, checkpoint__retainArchives="1")
            report = app.answer(drain_id, DrainState.DRAINED, DrainState.FAILED, DrainState.REJECTED, patient=True)
        app.finish(drain_id)
        if report.state is not DrainState.DRAINED:
            fault = self._s3.proxy.fault
            assert fault is not None
            assert fault.happened, report
            self._s3.proxy.fault = fault if fault.again else None
        return report.state is DrainState.DRAINED


@pytest.fixture(autouse=True)
def impatient(spark: SparkSession) -> None:
    """Let a client have a time-out of less than the fifteen seconds that S3A takes for the least."""
    jvm = SparkInternals(spark).jvm
    jvm.org.apache.hadoop.fs.s3a.impl.AWSClientConfig.setMinimumOperationDuration(jvm.java.time.Duration.ofMillis(1))


@pytest.mark.soak
@pytest.mark.parametrize("case", list(_cases()), ids=str)
def test_at_any_request(case: Case, s3: S3Server, spark: SparkSession, tmp_path: Path) -> None:
    """One request of a drain after the other, until a drain makes no more of them."""
    case.setting.apply(spark)
    with session_confs(spark, {"spark.sql.shuffle.partitions": "1"}):  # a second one makes the same requests again
        failures = dict(_failures(case, s3, spark, tmp_path))
    assert not failures


def _failures(case: Case, s3: S3Server, spark: SparkSession, tmp_path: Path) -> Iterator[tuple[int, str]]:
    generations: Generations | None = None
    for number, failure in enumerate(cycle(case.failures), start=1):
        if number > _READS and case.kind == "read":
            break
        try:
            if generations is None or generations.drains >= case.most_drains:
                generations = Generations(case.setting, spark, s3, tmp_path / f"from-{number}")
                if case.most_drains > 1:
                    generations.drained(Fault(kind="none"))  # a first drain has no earlier archive to remove
            if not generations.drained(case.fault(failure, number)):
                break
            LOG.info("%s, %s at %s %d: exact", case.setting, failure, case.kind, number)
        except Exception as error:
            LOG.exception("%s, %s at %s %d", case.setting, failure, case.kind, number)
            yield number, f"{type(error).__name__}: {error}"[:2000]
            generations = None
    assert number > _LEAST


@pytest.mark.parametrize("flush", ["Auto", pytest.param("WorkCopy", marks=pytest.mark.soak)])
def test_at_some_requests(flush: str, s3: S3Server, spark: SparkSession, tmp_path: Path) -> None:
    setting = Setting(flush, "Reseed", bucket=IMPATIENT)
    setting.apply(spark)
    generations = Generations(setting, spark, s3, tmp_path / "events")
    for failure, kind, number in _IN_EVERY_RUN[flush]:
        assert generations.drained(Case(setting, kind, (failure,)).fault(failure, number))
