"""The digest of a Python function: equal for equal code of two runs, another for other code."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
from pyspark.cloudpickle import dumps
from spark_drain_agent.spark_internals.plan_text import code_digest

KNOWN = {"a", "bb", "ccc", "dddd"}

def known(text):
    return text in {"q", "ww", "eee", "rrrr"} or text in KNOWN or len(text) > LIMIT

print(code_digest(dumps((known, "boolean"))))
"""


def digest(seed: int, limit: int) -> str:
    program = PROGRAM.replace("LIMIT", str(limit))
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_the_order_of_a_set_does_not_count_and_other_code_does() -> None:
    """The order depends on a seed that differs from run to run."""
    first = digest(1, 7)
    assert digest(2, 7) == first
    assert digest(1, 8) != first
