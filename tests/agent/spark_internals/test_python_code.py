"""The digest of a Python function: equal for equal code of two runs, another for other code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.cloudpickle import dumps
from spark_drain_agent.spark_internals.python_code import code_digest

PROGRAM = """
import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple, TypeVar

import tables
from helper import parsed
from pyspark.cloudpickle import dumps
from spark_drain_agent.spark_internals.python_code import code_digest

TENANT = "6f1c0000-1111-4222-8333-444455556666"
KNOWN = {"a", "bb", "ccc", "dddd"}
COUNTS = {name: len(name) for name in KNOWN}
LATE = True
LOW, HIGH = 10, 20

def known(text, deep=True):
    if text in {"q", "ww", "eee", "rrrr"} or text in KNOWN or text in COUNTS or len(text) > LOW:
        return LATE and HIGH
    return known(text[1:], deep) if deep and text else len(text)

T = TypeVar("T")

class Row(NamedTuple):
    name: str

class Colour(Enum):
    RED = 1

@dataclass
class Processor:
    limit: int = 7
    step: object = parsed
    strict = True

    def first(self, rows: Iterator[T]) -> T:
        return next(rows)

    def handle(self, text):
        return Row(text) if Colour.RED and known(text) else self.limit

LAST_HOUR_OF_ALL = "LAST_HOUR"

def shifted(text):
    def shift():
        return os.environ.get("SHIFT_HOURS", "0")
    return Path(__file__).with_name("shift.yaml").read_text() + shift() + os.environ[LAST_HOUR_OF_ALL]

def looked_up(text):
    import late
    from shop import prices
    return text == TENANT or late.limit(text) + prices.of(text) + tables.found(text)

KEY = "0123456789ab4def8123456789abcdef"

def told(function):
    label = f"call of {function}"
    return lambda text: (label, function(text))

TOLD = told(parsed)
print(code_digest(dumps((known, parsed, Processor().handle, tables.finding(3), looked_up, shifted, TOLD, KEY, "boolean"))))
"""


HELPER = """
from rules import LIMITS

def parsed(text):
    return LIMITS.get(text, 0)
"""
MODULES = {
    "program.py": PROGRAM,
    "helper.py": HELPER,
    "rules.py": "LIMITS = {'a': 1}",
    "tables.py": """
import importlib
import os

FROM = os.environ.get("FIRST_HOUR", "")
HOURS = "hours.toml"

def found(text):
    import indexed
    return importlib.import_module("named").NAMES.get(text, indexed.FIRST)

def finding(first):
    return lambda text: text[first:]
""",
    "hours.toml": "first = 1",
    "shift.yaml": "hours: 1",
    "indexed.py": "FIRST = 1",
    "named.py": "NAMES = {'a': 1}",
    "late.py": "def limit(text): return 1",
    "shop/__init__.py": "SCALE = 1",
    "shop/prices.py": "from . import taxes\ndef of(text): return taxes.TAX",
    "shop/taxes.py": "TAX = 1",
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program with modules of its own, some of which are imported when a function is called, and a package."""
    (tmp_path / "shop").mkdir()
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    return tmp_path / "program.py"


def digest(program: Path, seed: str = "1", **variables: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed, **variables}
    return subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_what_differs_from_run_to_run_does_not_count(program: Path, tmp_path: Path) -> None:
    """The order of a set depends on a seed; cloudpickle gives ids to classes; modules are compiled once; Spark fetches into new folders."""
    text = program.read_text().replace("LATE = True", "LATE = Path(__file__).parent")
    first = digest(program)
    assert digest(program, seed="2") == first
    program.write_text(text)
    for uuid in ("6f1c0000-1111-4222-8333-444455556666", "00000000-1111-4222-8333-444455556666"):
        fetched = tmp_path / f"spark-{uuid}"
        shutil.copytree(tmp_path, fetched, ignore=shutil.ignore_patterns("spark-*", "__pycache__"))
        assert digest(fetched / "program.py") == digest(fetched / "program.py", seed="3")
    assert len({digest(path) for path in tmp_path.glob("spark-*/program.py")}) == 1


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("program.py", "limit: int = 7", "limit: int = 8"),
        ("program.py", "LATE = True", "LATE = False"),
        ("program.py", "LOW, HIGH = 10, 20", "LOW, HIGH = 20, 10"),
        ("program.py", "strict = True", "strict = False"),
        ("program.py", "text, deep=True", "text, deep=False"),
        ("program.py", "len(text) > LOW", "len(text) < LOW"),
        ("helper.py", "get(text, 0)", "get(text, 1)"),
        ("rules.py", "'a': 1", "'a': 2"),
        ("tables.py", "text[first:]", "text[:first]"),
        ("tables.py", "get(text, indexed", "pop(text, indexed"),
        ("hours.toml", "first = 1", "first = 2"),
        ("shift.yaml", "hours: 1", "hours: 2"),
        ("indexed.py", "FIRST = 1", "FIRST = 2"),
        ("named.py", "'a': 1", "'a': 2"),
        ("late.py", "return 1", "return 2"),
        ("shop/__init__.py", "SCALE = 1", "SCALE = 2"),
        ("shop/prices.py", "taxes.TAX", "-taxes.TAX"),
        ("shop/taxes.py", "TAX = 1", "TAX = 2"),
        ("program.py", "6f1c0000", "7f1c0000"),
        ("program.py", "0123456789ab4def", "1123456789ab4def"),
    ],
)
def test_other_code_has_another_digest(program: Path, file: str, old: str, new: str) -> None:
    first = digest(program)
    changed = program.parent / file
    assert old in changed.read_text()
    changed.write_text(changed.read_text().replace(old, new) + "\n")
    assert digest(program) != first


@pytest.mark.parametrize("name", ["FIRST_HOUR", "SHIFT_HOURS", "LAST_HOUR"])
def test_a_variable_that_a_module_or_function_names_counts(program: Path, name: str) -> None:
    assert digest(program, **{name: "1"}) != digest(program, **{name: "2"})


def test_a_variable_that_is_not_named_does_not_count(program: Path) -> None:
    assert digest(program, HOUR="1") == digest(program, HOUR="2")


def test_what_is_nested_deeply_has_a_digest_too() -> None:
    class Link:
        def __init__(self, before: object) -> None:
            self.before = before

    def linked(last: object) -> str:
        links: object = last
        for _ in range(150):
            links = Link([links])
        return code_digest(dumps(lambda: links))  # type: ignore[no-untyped-call]

    assert linked(1) == linked(1) != linked(2)


def test_a_module_that_was_loaded_meanwhile_does_not_count(program: Path) -> None:
    first = digest(program)
    program.write_text(
        program.read_text().replace("print(code", "[__import__(name) for name in ('indexed', 'late', 'named', 'shop.prices')]\nprint(code")
    )
    assert digest(program) == first


def test_a_folder_of_the_program_does_not_count(program: Path, tmp_path: Path) -> None:
    """A driver's container may be in a new one each time."""
    shutil.copytree(tmp_path, tmp_path / "container", ignore=shutil.ignore_patterns("container", "__pycache__"))
    assert digest(tmp_path / "container/program.py") == digest(program)
