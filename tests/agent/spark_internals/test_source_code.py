"""What a module's text says about what it needs."""

from __future__ import annotations

import ast
import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from spark_drain_agent.spark_internals.source_code import SourceCode, source_code

SOURCE = "import settings\n" + "total = max(1, len([number + 2 for number in (3, 4)]))\n" * 200


class Finalized:
    """Garbage like Py4J's references to Java objects: when it is collected, Python code runs, and another thread may have its turn."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        time.sleep(0)


def called_from(depth: int, source: bytes) -> SourceCode:
    Finalized()
    return called_from(depth - 1, source) if depth else source_code("", source)


@pytest.fixture
def collected_often() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(20)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("collected_often")
def test_programs_that_start_queries_in_several_threads() -> None:
    """Python 3.11 counts the depth of a syntax tree in one place for all threads, and finds that it does not add up."""
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: called_from(number, f"{SOURCE}# {number}".encode()), range(40)))
    assert {code.imported for code in found} == {frozenset({"settings"})}


def test_what_disturbs_the_parser_from_elsewhere_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, failures = ast.parse, iter([SystemError("AST constructor recursion depth mismatch (before=63, after=59)")])

    def disturbed(source: bytes) -> ast.Module:
        for failure in failures:
            raise failure
        return parse(source)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert source_code("", b"import tables") == source_code("", b"import tables  # the same")
