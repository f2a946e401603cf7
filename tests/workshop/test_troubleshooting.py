"""Every word that a drain can show has a row in docs/troubleshooting.md, and no row is about a word that nobody shows."""

import re

import pytest
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason
from spark_drain_store import reasons as agent_reasons

from tests.workshop.repository import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
SECTIONS: dict[str, str] = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
AGENT_REASONS = {value for name, value in vars(agent_reasons).items() if name.isupper() and isinstance(value, str)}


def rows(section: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", SECTIONS[section], re.MULTILINE)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("How a drain ends", [phase for phase in Phase if phase.terminal]),
        ("Phases on the way", [phase for phase in Phase if not phase.terminal]),
        ("Conditions", list(ConditionType)),
        ("Reasons of the operator", list(Reason)),
        ("Reasons of the agent", sorted(AGENT_REASONS)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_section_has_a_row_for_every_word_and_no_other(section: str, words: list[str]) -> None:
    documented = rows(section)
    assert sorted(documented) == sorted(set(documented)), "documented twice"
    assert set(documented) == {str(word) for word in words}


def test_the_fence_that_people_see_is_explained() -> None:
    from spark_drain_agent.checkpoint.fence import fence_line

    line = fence_line("uuid")
    assert any(line.startswith(title.rpartition(" ")[2]) for title in SECTIONS)
    assert "docs/troubleshooting.md" in line
