"""The digest of a function of foreachBatch: equal for equal code of two runs, another for other code and for another destination."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from spark_drain_agent.spark_internals.driver_code import batch_function_digest

PROGRAM = """
import json
import time
import uuid
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, lru_cache, partial, singledispatch
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import NamedTuple

OUTPUT = Path("/output")
KINDS = frozenset({"a", "bb", "ccc", "dddd"})
MOST = 10
topic = "counts"
run = f"run-{uuid.uuid4()}"
started = time.time()
written = 0
cache = {started: "any"}

class Writer:
    suffix = ".json"

    def __init__(self, folder):
        self.folder, self.session, self.count = folder, object(), started

    def path(self, batch_id):
        return self.folder / f"{batch_id}{self.suffix}"

    def write(self, frame, batch_id):
        self.count += 1
        if frame.count() < MOST and KINDS:
            save(frame, self.path(batch_id), run)

def save(frame, path, name="all"):
    global written
    written += 1
    cache[name] = topic
    frame.write.json(str(path))

def closed(folder):
    def write(frame, batch_id):
        save(frame, Path(folder) / str(batch_id))
    return write

class Named(NamedTuple):
    table: str

@dataclass(slots=True)
class Slots:
    table: str

@dataclass
class Data:
    step: Callable = save
    writer: Writer = Writer("/written")
    kinds: frozenset = KINDS
    names: list = field(default_factory=list)

class Chosen(Enum):
    SAVE = partial(save, name="chosen")

class Base:
    table = "inherited"

    @property
    def known(self):
        return "/known"

    @cached_property
    def cached(self):
        return "/cached"

class Derived(Base):
    def __init__(self, settings):
        self.settings = settings

    def __call__(self, frame, batch_id):
        frame.write.saveAsTable(self.table)

@lru_cache
def remembered():
    return "/remembered"

@singledispatch
def dispatched(value):
    return "/dispatched"

settings = json.loads('{"sink": {"table": "read"}}')
spaces = SimpleNamespace(table="spaces"), Namespace(table="parsed")
named, slots = Named("named"), Slots("slots")
handlers = {"click": lambda frame: frame.filter("a > 1")}
steps = [lambda frame: frame.filter("b > 1")]
LOCKS, PAIRS = (Lock(),), (("a", lambda column: column), ("b", save))
SETS = (frozenset({"a", "bb", "ccc"}), {("x", frozenset({"y", "yy"})), ("z", frozenset())})

def held(frame, batch_id):
    return settings, spaces, named, slots, handlers, steps, remembered(), dispatched(1), LOCKS, PAIRS, SETS, Chosen.SAVE

def scaled(factor, append):
    return lambda frame, batch_id: frame.select(factor) if append else None

nested = []
for _ in range(5_000):
    nested = [nested]
nested.append("deepest")

FUNCTIONS = [
    Writer(OUTPUT).write, save, closed("/elsewhere"), partial(save, name="some"), lambda frame, batch_id: save(frame, OUTPUT),
    held, Derived({"table": "own"}), scaled(3, True), Data(), lambda frame, batch_id: nested,
]
"""


def functions(program: str) -> list[Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(program, "application.py", "exec"), names)
    found: list[Any] = names["FUNCTIONS"]
    return found


def digests(program: str) -> list[str]:
    return [batch_function_digest(function) for function in functions(program)]


def test_what_differs_from_run_to_run_does_not_count() -> None:
    assert digests(PROGRAM) == digests(PROGRAM)
    assert len(set(digests(PROGRAM))) == len(digests(PROGRAM))


def test_another_process_has_the_same_digests(tmp_path: Path) -> None:
    """Objects have other addresses there, and sets another order."""
    reading = "from spark_drain_agent.spark_internals.driver_code import batch_function_digest"
    (tmp_path / "program.py").write_text(f"{PROGRAM}\n{reading}\nprint([batch_function_digest(function) for function in FUNCTIONS])")
    found = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = [sys.executable, str(tmp_path / "program.py")]
        found.add(subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("before", "after", "seen"),
    [
        ('"/output"', '"/another"', [0, 4]),
        ('"counts"', '"others"', [0, 1, 2, 3, 4, 5, 8]),
        ('"/elsewhere"', '"/another"', [2]),
        ('"some"', '"others"', [3]),
        ('"all"', '"others"', [0, 1, 2, 3, 4, 5, 8]),
        ("MOST = 10", "MOST = 20", [0, 8]),
        ('"dddd"', '"eeee"', [0, 8]),
        ("< MOST", "> MOST", [0, 8]),
        ('".json"', '".csv"', [0, 8]),
        ("frame.write.json", "frame.write.csv", [0, 1, 2, 3, 4, 5, 8]),
        ("written = 0", "written = 7", []),
        ('"read"', '"another"', [5, 6]),
        ('"spaces"', '"another"', [5]),
        ('"parsed"', '"another"', [5]),
        ('Named("named")', 'Named("another")', [5]),
        ('Slots("slots")', 'Slots("another")', [5]),
        ('"a > 1"', '"a > 2"', [5]),
        ('"b > 1"', '"b > 2"', [5]),
        ('"/remembered"', '"/another"', [5]),
        ('"/dispatched"', '"/another"', [5]),
        ('"yy"', '"zz"', [5]),
        ('"chosen"', '"another"', [5]),
        ('"own"', '"another"', [6]),
        ('"inherited"', '"another"', [6]),
        ('"/known"', '"/another"', [6]),
        ('"/cached"', '"/another"', [6]),
        ("scaled(3, True)", "scaled(4, True)", [7]),
        ("scaled(3, True)", "scaled(3, False)", [7]),
        ('"/written"', '"/another"', [8]),
        ('"deepest"', '"another"', [9]),
    ],
)
def test_what_changes_the_output_counts(before: str, after: str, seen: list[int]) -> None:
    old, new = digests(PROGRAM), digests(PROGRAM.replace(before, after))
    assert before in PROGRAM
    assert [number for number in range(len(old)) if old[number] != new[number]] == seen


def test_a_number_that_may_be_a_time_or_a_process_does_not_count() -> None:
    assert len({digests(PROGRAM.replace("scaled(3,", f"scaled({number},"))[7] for number in (os.getpid(), 1_763_000_000, 10**18, 0.5)}) == 1


def test_a_function_counts_as_it_is_when_its_query_starts() -> None:
    """A loop that reads its settings again before each start has another version after they have changed."""
    [writer, *_] = functions(PROGRAM)
    first = batch_function_digest(writer)
    assert batch_function_digest(writer.__self__.write) == first
    assert batch_function_digest(writer.__self__.path) != first
    writer.__self__.folder = "/another"
    assert batch_function_digest(writer) != first


KEEPING = """
last_written = last_seen = ""

def write(frame, batch_id):
    global last_written
    last_written = f"/output/{batch_id}"

def noting():
    seen = "none"

    def write(frame, batch_id):
        nonlocal seen
        seen = f"batch {batch_id}"

    return write

def reading(frame, batch_id):
    frame.write.json(last_written)

FUNCTIONS = [write, noting(), reading]
"""


def test_what_a_function_keeps_of_its_own_runs_does_not_count() -> None:
    """A query that was started again is the same version as the one of a driver that was started again."""
    write, noting, reading = functions(KEEPING)
    before = [batch_function_digest(function) for function in (write, noting, reading)]
    write(None, 7)
    noting(None, 7)
    after = [batch_function_digest(function) for function in (write, noting, reading)]
    assert after[:2] == before[:2]
    assert after[2] != before[2]


UNRULY = """
from functools import partial

class Proxy:
    @property
    def __class__(self):
        raise RuntimeError("no request is handled")

    def __repr__(self):
        raise RuntimeError("no repr")

    def __getattr__(self, name):
        raise KeyError(name)

class Answering:
    __slots__ = ("name",)

    def __getattr__(self, name):
        return Answering()

class Mapping(dict):
    def items(self):
        raise RuntimeError("not loaded")

    __len__ = __iter__ = items

PROXIES, answering = (Proxy(), Answering()), Answering()
known = {Proxy(): "a", "proxy": Proxy(), "mapping": Mapping(table="counts")}
FUNCTIONS = [Proxy(), Answering(), lambda frame, batch_id: (PROXIES, answering, known), partial(print, answering, {Proxy()})]
"""


def test_nothing_of_the_application_is_called() -> None:
    assert digests(UNRULY) == digests(UNRULY)
    other = digests(UNRULY.replace("counts", "others"))
    assert [first == second for first, second in zip(digests(UNRULY), other, strict=True)] == [True, True, False, True]


@pytest.mark.parametrize("module", ["pyspark.sql", "py4j.protocol", "cloudpickle", "spark_drain_agent.gate"])
def test_values_of_others_are_not_looked_into(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's own images have pyspark in a folder that is not one of installed packages."""
    (tmp_path / "pyspark_like.py").write_text("class Session:\n    def __init__(self, name):\n        self.name = name\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pyspark_like", raising=False)
    program = "import pyspark_like\nsession = pyspark_like.Session('spark-1')\nFUNCTIONS = [lambda frame, batch_id: session]"
    assert digests(program) != digests(program.replace("spark-1", "spark-2"))
    import pyspark_like  # type: ignore[import-not-found]

    pyspark_like.Session.__module__ = module
    monkeypatch.setitem(sys.modules, module, pyspark_like)
    assert digests(program) == digests(program.replace("spark-1", "spark-2"))
