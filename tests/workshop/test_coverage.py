"""Every row of docs/coverage.md has a test that exists, or says that it is planned."""

import ast
import re

import pytest

from tests.workshop.repository import ROOT

PAGE = ROOT / "docs" / "coverage.md"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[tuple[str, str]]:
    table = [
        line
        for line in PAGE.read_text().splitlines()
        if line.startswith("|")
        and not line.startswith(("|---", "| the document |", "| the complaint |", "| the finding |", "| the promise |", "| the field |"))
    ]
    return [(cells[0], cells[-1]) for line in table if (cells := [cell.strip() for cell in line.strip("|").split("|")])]


def test_there_is_something_to_check() -> None:
    assert len(rows()) > 60
    assert sum(last != "planned" for _, last in rows()) > 1


@pytest.mark.parametrize(("row", "last"), rows(), ids=[row[:60] for row, _ in rows()])
def test_a_row_has_its_test_or_is_planned(row: str, last: str) -> None:
    if last == "planned":
        return
    named = TEST.findall(last)
    assert re.sub(r"[, ]|" + TEST.pattern, "", last) == "", f"{row}: neither tests nor the word planned: {last}"
    for file, function in named:
        assert (ROOT / file).is_file(), f"{row}: there is no {file}"
        defined = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, ast.FunctionDef)}
        assert function in defined, f"{row}: {file} has no {function}"
