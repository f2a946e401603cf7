"""docs/operators.md says what the table of the operator tests says."""

from __future__ import annotations

import re

from tests.semantics.operator_table import CASES
from tests.workshop.repository import ROOT

PAGE = (ROOT / "docs" / "operators.md").read_text()


def test_every_operator_is_documented_as_it_was_measured() -> None:
    rows = [tuple(cell.strip() for cell in line.split("|")[1:5]) for line in PAGE.splitlines() if re.match(r"\| (?!query |-)", line)]
    assert rows == [
        (
            case.name,
            ", ".join(dict.fromkeys(disposition for _, disposition, _, _ in case.operators)),
            "yes" if case.flushed else "nothing",
            "rows" if any(left for *_, left in case.operators) else "none",
        )
        for case in CASES
    ]
