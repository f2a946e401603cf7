import io
from typing import Any

import pytest

from demo.view import View, story


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Cluster:
    """What feeds know, at one moment."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.objects = {(item["kind"], item["metadata"]["name"]): item for item in objects}

    def object(self, kind: str, name: str) -> dict[str, Any] | None:
        return self.objects.get((kind, name))

    def pods(self, role: str) -> list[dict[str, Any]]:
        return [item for item in self.objects.values() if item["metadata"].get("labels", {}).get("spark-role") == role]


def pod(name: str, role: str, phase: str = "Running") -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name, "labels": {"spark-role": role}}, "status": {"phase": phase}}


def drain(phase: str, *conditions: str) -> dict[str, Any]:
    holds = [{"type": kind, "status": "True"} for kind in conditions]
    return {"kind": "PipelineDrain", "metadata": {"name": "flights-v1"}, "status": {"phase": phase, "conditions": holds}}


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([], "application NEW, no pods"),
        ([pod("d", "driver"), pod("e1", "executor"), pod("e2", "executor")], "application NEW, 1 driver, 2 executors"),
        ([pod("d", "driver", "Failed")], "application NEW, no pods"),
        (
            [drain("Flushing", "Accepted", "SourcesStopped", "Reconciling")],
            "application NEW, no pods, drain Flushing (Accepted SourcesStopped)",
        ),
        ([drain("Pending")], "application NEW, no pods, drain Pending (no condition yet)"),
    ],
)
def test_one_line_says_how_far_it_is(objects: list[dict[str, Any]], words: str) -> None:
    assert story(Cluster(*objects), "v1") == words  # type: ignore[arg-type]


def test_steps_are_numbered_and_blocks_indented() -> None:
    stream = io.StringIO()
    view = View(2, stream)
    view.step("first")
    view.block("a\n\nb\n")
    view.step("second")
    lines = stream.getvalue().splitlines()
    assert [line[:5] for line in lines] == ["[1/2]", "    a", "", "    b", "[2/2]"]


def test_a_terminal_gets_no_escape_before_something_was_drawn() -> None:
    stream = Terminal()
    View(1, stream).step("first")
    assert "\x1b" not in stream.getvalue()
