"""A program under the agent sees and does what it does without: `python X` and `python -m spark_drain_agent X`, compared."""

from __future__ import annotations

import os
import py_compile
import re
import signal
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import spark_drain_agent

from tests.agent.cli.probes import PROBES, SAMPLE, START

ROOT = Path(__file__).parents[3]
AGENT = {
    "module": ["-m", "spark_drain_agent"],
    "path": [str(Path(spark_drain_agent.__path__[0]) / "__main__.py")],
    "example": [str(ROOT / "examples/with_drain_agent.py")],
}
ARGUMENTS = ["--log-level", "-m", "--", "x y", "-5"]


@dataclass(frozen=True)
class Outcome:
    """What is seen of a process from outside."""

    code: int
    out: str
    err: str


def _interruptible() -> None:
    """Undo what a shell does to the commands that it runs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(folder: Path, *arguments: str, text: str = "from outside", **environment: str) -> Outcome:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=_interruptible,
    )
    return Outcome(done.returncode, done.stdout, re.sub("0x[0-9a-f]+", "0x", done.stderr))


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("probe", [probe if probe in SAMPLE else pytest.param(probe, marks=pytest.mark.soak) for probe in PROBES])
def test_a_script_is_as_without_the_agent(tmp_path: Path, probe: str) -> None:
    write(tmp_path, "beside.py", "WHO = 'the one beside the script'\n")
    script = write(tmp_path, "probe.py", PROBES[probe])
    plain = run(tmp_path, str(script), *ARGUMENTS)
    assert run(tmp_path, *AGENT["module"], str(script), *ARGUMENTS) == plain


def test_a_program_may_close_its_stderr(tmp_path: Path) -> None:
    """What the agent logs then is lost, and neither its threads nor the program's fail for it."""
    told = "import logging, sys\nsys.stderr.close()\nlogging.getLogger('spark_drain').warning('nobody reads this')\nprint('goes on')\n"
    assert run(tmp_path, *AGENT["module"], str(write(tmp_path, "silent.py", told))) == Outcome(0, "goes on\n", "")


@pytest.mark.parametrize("start", ["module", pytest.param("path", marks=pytest.mark.soak)])
@pytest.mark.parametrize("end", ["", "sys.exit(3)\n", "1 / 0\n"], ids=["to its end", "sys.exit", "fails"])
def test_python_may_be_told_to_stay(tmp_path: Path, start: str, end: str) -> None:
    """What follows then sees the program's variables."""
    script = write(tmp_path, "stays.py", f"import sys\nnumber = 42\nprint('ran')\n{end}")
    for told in (["-i"], []):
        plain, agent = (
            run(tmp_path, *told, *starting, str(script), text="number + 1\n", PYTHONINSPECT="1") for starting in ([], AGENT[start])
        )
        assert ("43" in plain.out) == bool(told), "without -i Python stays for a terminal only"
        assert (agent.code, agent.out, agent.err.splitlines()[-1:]) == (plain.code, plain.out, plain.err.splitlines()[-1:])


def test_a_program_that_configures_logging_does_not_silence_the_agent(tmp_path: Path) -> None:
    """`dictConfig` and `fileConfig` disable every logger that there is and that they do not name, unless they are told otherwise."""
    told = """
import logging.config
logging.config.dictConfig({"version": 1})
logging.getLogger("app").warning("of the program")
logging.getLogger("spark_drain").warning("of the agent")
logging.getLogger("spark_drain_store.kube_client").warning("of the store")
"""
    outcome = run(tmp_path, *AGENT["module"], str(write(tmp_path, "configured.py", told)))
    assert outcome.code == 0
    for line in ("of the program", "WARNING spark_drain: of the agent", "WARNING spark_drain_store.kube_client: of the store"):
        assert outcome.err.count(line) == 1, outcome.err


def programs(folder: Path) -> dict[str, list[str]]:
    """Return all the ways in which Python can be told what to run, in a folder with a program of each kind."""
    script = write(folder, "probe.py", START)
    write(folder, "package/__init__.py", "")
    write(folder, "package/sibling.py", "WHO = 'sibling'\n")
    relative = f"from .sibling import WHO\nprint(WHO)\n{START}"
    write(folder, "package/part.py", relative)
    write(folder, "package/__main__.py", relative)
    write(folder, "package/broken.py", "1 / 0\n")
    write(folder, "namespace/part.py", START)
    write(folder, "directory/__main__.py", START)
    write(folder, "empty/nothing.py", "")
    with zipfile.ZipFile(folder / "program.zip", "w") as packed:
        packed.writestr("__main__.py", f"import inside\nprint(inside.WHO)\n{START}")
        packed.writestr("inside.py", "WHO = 'inside'\n")
    py_compile.compile(str(script), cfile=str(folder / "compiled.pyc"))
    write(folder, "without_suffix", START)
    write(folder, "elsewhere/real.py", START)
    (folder / "link.py").symlink_to("elsewhere/real.py")
    return {
        "script": [str(script)],
        "relative path": ["probe.py"],
        "dotted path": ["./package/../probe.py"],
        "in another folder": ["elsewhere/real.py"],
        "link": ["link.py"],
        "without a suffix": ["without_suffix"],
        "compiled": ["compiled.pyc"],
        "directory": ["directory"],
        "directory with a slash": [f"{folder}/directory/"],
        "package as a directory": ["package"],
        "zip": ["program.zip"],
        "module": ["-m", "probe"],
        "module of a package": ["-m", "package.part"],
        "package": ["-m", "package"],
        "module of a namespace": ["-m", "namespace.part"],
        "module that fails": ["-m", "package.broken"],
        "library": ["-m", "json.tool", "--help"],
        "no such module": ["-m", "package.nothing"],
        "no such package": ["-m", "nothing.part"],
        "directory without a main": ["empty"],
    }


KINDS = (
    "script", "relative path", "dotted path", "in another folder", "link", "without a suffix", "compiled", "directory",
    "directory with a slash", "package as a directory", "zip", "module", "module of a package", "package", "module of a namespace",
    "module that fails", "library", "no such module", "no such package", "directory without a main",
)  # fmt: skip
SAMPLE_OF_STARTS = {
    ("link", "module"),
    ("module of a package", "module"),
    ("no such module", "module"),
    ("directory", "module"),
    ("zip", "module"),
    ("script", "path"),
    ("package", "example"),
}


@pytest.mark.parametrize(
    ("kind", "start"),
    [
        pytest.param(kind, start, marks=() if (kind, start) in SAMPLE_OF_STARTS else pytest.mark.soak, id=f"{kind}, {start}")
        for kind in KINDS
        for start in AGENT
    ],
)
def test_every_kind_of_program_starts_as_without_the_agent(tmp_path: Path, kind: str, start: str) -> None:
    program = programs(tmp_path)[kind]
    plain = run(tmp_path, *program, *ARGUMENTS)
    agent = run(tmp_path, *AGENT[start], *program, *ARGUMENTS)
    assert agent == plain


def test_a_script_that_is_a_pipe_is_run(tmp_path: Path) -> None:
    def outcome(*start: str) -> tuple[int, str, str]:
        found = run(tmp_path, *start, "/dev/stdin", *ARGUMENTS, text=START)
        return found.code, re.sub("/proc/[0-9]+/", "/proc/self/", found.out), found.err

    plain = outcome()
    assert plain[1]
    assert outcome(*AGENT["module"]) == plain


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["script", "module of a package", "directory"])
def test_a_safe_path_stays_safe(tmp_path: Path, kind: str) -> None:
    program = programs(tmp_path)[kind]
    plain = run(tmp_path, *program, PYTHONSAFEPATH="1", PYTHONPATH=str(tmp_path))
    assert run(tmp_path, *AGENT["module"], *program, PYTHONSAFEPATH="1", PYTHONPATH=str(tmp_path)) == plain


@pytest.mark.parametrize("configured", ["", "import logging\nlogging.basicConfig(format='root %(message)s', level=logging.INFO)\n"])
def test_the_agents_lines_are_shown_once(tmp_path: Path, configured: str) -> None:
    script = write(tmp_path, "probe.py", f"{configured}from spark_drain_agent.milestones import LOG\nLOG.info('said by the agent')\n")
    outcome = run(tmp_path, *AGENT["module"], str(script))
    assert re.fullmatch(r"\S+ \S+ INFO spark_drain: said by the agent\n", outcome.err)
    assert run(tmp_path, *AGENT["module"], "--log-level", "WARNING", str(script)).err == ""


@pytest.mark.soak
def test_an_excepthook_that_fails(tmp_path: Path) -> None:
    script = write(tmp_path, "probe.py", "import sys\nsys.excepthook = lambda *_: 1 / 0\nraise ValueError('out of milk')\n")
    plain, agent = run(tmp_path, str(script)), run(tmp_path, *AGENT["module"], str(script))
    original = "Original exception was:"
    assert (agent.code, agent.err.partition(original)[2]) == (plain.code, plain.err.partition(original)[2])
    assert agent.err.startswith("Error in sys.excepthook:")


@pytest.mark.parametrize("before", [[], ["--"], ["--metadata-store", "file:store", "--"]], ids=["script", "its end of options", "all"])
def test_two_dashes_are_the_applications_own(tmp_path: Path, before: list[str]) -> None:
    write(tmp_path, "shows.py", "import sys; print(sys.argv)")
    found = run(tmp_path, *AGENT["module"], *before, "shows.py", "--", "-5", "--")
    assert (found.code, found.out) == (0, "['shows.py', '--', '-5', '--']\n"), found.err


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    outcome = run(tmp_path, *AGENT["module"], "nowhere.py")
    assert (outcome.code, outcome.err) == (2, "error: script 'nowhere.py' does not exist\n")


def test_a_metadata_store_that_cannot_be_one(tmp_path: Path) -> None:
    script = write(tmp_path, "probe.py", "print('ran')\n")
    outcome = run(tmp_path, *AGENT["module"], "--metadata-store", "nowhere", str(script))
    assert (outcome.code, outcome.out) == (2, "")
    assert "--metadata-store: metadata store 'nowhere' must be file:DIR or configmap:NAMESPACE/APPLICATION" in outcome.err
