"""Installed packages of the application count with what they import, and with the variables and files that they name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from spark_drain_agent.spark_internals import installed_packages
from spark_drain_agent.spark_internals.installed_packages import counted, forget

FILES = {
    "clicks/__init__.py": "",
    "clicks/times.py": """
import os
from pathlib import Path

from acme_times import parse

RULES = Path(__file__).parent / "rules" / "times.yaml"

def event_time(text):
    return parse(text) + int(os.environ.get("EVENT_TIME_SHIFT", "0"))
""",
    "clicks/rules/times.yaml": "shift: 0",
    "clicks/sinks.py": "def write(frame, batch_id):\n    from clicks import settings\n    frame.write.json(settings.out())\n",
    "clicks/settings.py": "import os\n\ndef out():\n    return os.environ['CLICKS_OUT']\n",
    "acme_times/__init__.py": "from importlib import import_module\n\ndef parse(text):\n    return import_module('acme.shift').HOURS\n",
    "acme/shift.py": "import json, acme_zones as zones\nHOURS = 0\n",
    "acme_zones.py": "ZONE = 0\n",
    "unrelated/__init__.py": "import os\nOTHER = os.environ.get('OTHER_VARIABLE', '')\n",
}
PROGRAMS = {
    "function.py": """
from clicks.times import event_time
from pyspark.cloudpickle import dumps
from spark_drain_agent.spark_internals.python_code import code_digest
print(code_digest(dumps(event_time)))
""",
    "batches.py": """
from clicks.sinks import write
from spark_drain_agent.spark_internals.driver_code import batch_function_digest
print(batch_function_digest(write))
""",
}


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    folder = tmp_path / "lib/site-packages"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    return folder


def digest(installed: Path, program: str, seed: str = "1", **variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    run = [sys.executable, str(installed.parent.parent / program)]
    return subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("program", [*PROGRAMS])
def test_a_start_is_the_same_version(installed: Path, program: str) -> None:
    first = digest(installed, program)
    assert digest(installed, program, seed="2", OTHER_VARIABLE="a", HOSTNAME="driver-2") == first
    (installed / "unrelated/__init__.py").write_text("")
    assert digest(installed, program, seed="3") == first


@pytest.mark.parametrize("program", [*PROGRAMS])
@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("clicks/times.py", "parse(text) +", "parse(text) -"),
        ("clicks/rules/times.yaml", "shift: 0", "shift: 8"),
        ("acme_times/__init__.py", "HOURS", "HOURS + 1"),
        ("acme/shift.py", "HOURS = 0", "HOURS = 8"),
        ("acme_zones.py", "ZONE = 0", "ZONE = 8"),
    ],
)
def test_files_count(installed: Path, program: str, file: str, before: str, after: str) -> None:
    first = digest(installed, program)
    assert before in FILES[file]
    (installed / file).write_text(FILES[file].replace(before, after))
    assert digest(installed, program) != first


@pytest.mark.parametrize("program", [*PROGRAMS])
@pytest.mark.parametrize("name", ["EVENT_TIME_SHIFT", "CLICKS_OUT"])
def test_variables_count(installed: Path, program: str, name: str) -> None:
    assert digest(installed, program, **{name: "0"}) != digest(installed, program, **{name: "8"})


@pytest.fixture
def large(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose sources are not read, so that a start stays fast."""
    monkeypatch.setattr(installed_packages, "_MOST_BYTES", 1_000)
    return installed / "clicks"


def found(place: Path) -> list[str]:
    forget()
    return [*counted({place})]


def test_what_is_large_counts_by_what_was_installed(large: Path) -> None:
    record = large.parent / "clicks-1.0.dist-info/RECORD"
    record.parent.mkdir()
    record.write_text("clicks/times.py,sha256=a,1\nclicks/__pycache__/times.pyc,,\nother.py,,\n")
    first = found(large)
    (large / "times.py").write_text("")
    record.write_text("clicks/times.py,sha256=a,1\nother.py,sha256=c,2\n")
    assert found(large) == first
    assert len(first) == 1
    record.write_text("clicks/times.py,sha256=b,1\nother.py,sha256=c,2\n")
    assert found(large) != first


def test_what_is_large_and_was_copied_counts_by_its_files(large: Path) -> None:
    first = found(large)
    (large / "times.py").write_text("")
    assert found(large) != first


def test_small_packages_are_read_before_large_ones(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_VARIABLE", "a")
    monkeypatch.setattr(installed_packages, "_MOST_BYTES", 2_000)
    forget()
    assert "OTHER_VARIABLE=a" in [*counted({installed / "clicks", installed / "unrelated"})]


class Importing:
    """A finder that imports something to find something, as that of setuptools does for distutils."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        raise AssertionError(f"asked for {name}")


def test_nothing_is_imported(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(installed)
    before = {*sys.modules}
    monkeypatch.setattr(sys, "meta_path", [Importing()])
    assert len([line for line in found(installed / "clicks") if line.startswith("acme")]) == 3
    assert {*sys.modules} == before
