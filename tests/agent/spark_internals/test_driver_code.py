"""The digest of a function of foreachBatch: equal for equal code of two runs, another for other code and for another destination."""

from typing import Any

import pytest
from spark_drain_agent.spark_internals.driver_code import batch_function_digest

PROGRAM = """
import time
import uuid
from functools import partial
from pathlib import Path

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

FUNCTIONS = [Writer(OUTPUT).write, save, closed("/elsewhere"), partial(save, name="some"), lambda frame, batch_id: save(frame, OUTPUT)]
"""


def digests(program: str) -> list[str]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(program, "application.py", "exec"), names)
    return [batch_function_digest(function) for function in names["FUNCTIONS"]]


def test_what_differs_from_run_to_run_does_not_count() -> None:
    assert digests(PROGRAM) == digests(PROGRAM)
    assert len(set(digests(PROGRAM))) == len(digests(PROGRAM))


@pytest.mark.parametrize(
    ("before", "after", "seen"),
    [
        ('"/output"', '"/another"', [0, 4]),
        ('"counts"', '"others"', [0, 1, 2, 3, 4]),
        ('"/elsewhere"', '"/another"', [2]),
        ('"some"', '"others"', [3]),
        ('"all"', '"others"', [0, 1, 2, 3, 4]),
        ("MOST = 10", "MOST = 20", [0]),
        ('"dddd"', '"eeee"', [0]),
        ("< MOST", "> MOST", [0]),
        ('".json"', '".csv"', [0]),
        ("frame.write.json", "frame.write.csv", [0, 1, 2, 3, 4]),
        ("written = 0", "written = 7", []),
    ],
)
def test_what_changes_the_output_counts(before: str, after: str, seen: list[int]) -> None:
    old, new = digests(PROGRAM), digests(PROGRAM.replace(before, after))
    assert [number for number in range(len(old)) if old[number] != new[number]] == seen


def test_code_of_others_is_not_looked_into() -> None:
    assert batch_function_digest(print) == batch_function_digest(pytest.fail)
