"""Every word that a status can show has a row in the docs, and no row is about a word that nobody shows."""

import re

import pytest
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason
from spark_drain_operator.kinds.placement import reasons as placement
from spark_drain_store import reasons as agent_reasons

from tests.workshop.repository import ROOT


def sections(page: str) -> dict[str, str]:
    return dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL))


SECTIONS = sections("troubleshooting.md")
AGENT_REASONS = {value for name, value in vars(agent_reasons).items() if name.isupper() and isinstance(value, str)}


def rows(text: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)


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
    documented = rows(SECTIONS[section])
    assert sorted(documented) == sorted(set(documented)), "documented twice"
    assert set(documented) == {str(word) for word in words}


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("How a placement ends", [phase for phase in placement.Phase if phase.terminal]),
        ("Reasons", [reason for reason in placement.Reason if reason not in (placement.Reason.NOT_STALLED, *placement.Phase)]),
    ],
    ids=["endings", "reasons"],
)
def test_each_word_of_a_placement_has_a_row(section: str, words: list[str]) -> None:
    documented = rows(sections("executors.md")[section])
    assert sorted(documented) == sorted(set(documented)), "documented twice"
    assert set(documented) == {str(word) for word in words}


def test_the_fence_that_people_see_is_explained() -> None:
    from spark_drain_agent.checkpoint.fence import fence_line

    line = fence_line("uuid")
    assert any(line.startswith(title.rpartition(" ")[2]) for title in SECTIONS)
    assert "docs/troubleshooting.md" in line
