"""A restored API server is told by its versions."""

from typing import Any

import pytest
from spark_drain_operator.storage.versions import Versions


def at(version: str) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version}}


@pytest.mark.parametrize(
    ("known", "found", "restored"),
    [([], "7", False), ([7], "7", False), ([7], "8", False), ([8, 7], "7", True), ([7], "no number", False), ([7], "", False)],
)
def test_an_answer_behind_what_was_told(known: list[int], found: str, restored: bool) -> None:
    versions = Versions()
    for version in known:
        versions.tell("pods", version)
    versions.tell("nodes", 100)
    assert versions.checked("pods", lambda: at(found)) == at(found)
    assert versions.restored.is_set() is restored


def test_a_watch_that_tells_a_newer_version_before_the_answer_is_read() -> None:
    versions = Versions()

    def ask() -> dict[str, Any]:
        versions.tell("pods", 9)
        return at("8")

    versions.checked("pods", ask)
    assert not versions.restored.is_set()


def test_answers_are_compared_with_each_other() -> None:
    versions = Versions()
    versions.checked("pods", lambda: at("8"))
    versions.checked("pods", lambda: at("7"))
    assert versions.restored.is_set()
