"""The digest of a Python function: equal for equal code of two runs, another for other code."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeVar

from pyspark.cloudpickle import dumps
from spark_drain_agent.spark_internals.plan_text import code_digest

KNOWN = {"a", "bb", "ccc", "dddd"}

def known(text):
    return text in {"q", "ww", "eee", "rrrr"} or text in KNOWN or len(text) > LIMIT

T = TypeVar("T")

class Row(NamedTuple):
    name: str

class Colour(Enum):
    RED = 1

@dataclass
class Processor:
    limit: int = LIMIT

    def first(self, rows: Iterator[T]) -> T:
        return next(rows)

    def handle(self, text):
        return Row(text) if Colour.RED and known(text) else self.limit

print(code_digest(dumps((known, Processor().handle, "0123456789abcdef0123456789abcdef", "boolean"))))
"""


def digest(seed: int, limit: int) -> str:
    program = PROGRAM.replace("LIMIT", str(limit))
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_the_order_of_a_set_does_not_count_and_other_code_does() -> None:
    """The order depends on a seed that differs from run to run; so do the ids that cloudpickle gives to classes of the program."""
    first = digest(1, 7)
    assert digest(2, 7) == first
    assert digest(1, 8) != first
