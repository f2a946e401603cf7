"""The commands of the README before anything is installed, and the promises of the CI script."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.errors import DevclusterError
from tests.workshop.repository import ROOT
from tools import setup

_BUT_CONTAINER_TOOLS = {"git": "exit 0", "openssl": "exit 0", "java": "echo 'openjdk version \"21.0.2\"' >&2"}


def run(*command: str, path: Path | None = None, folder: Path = ROOT, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {"HOME": os.environ["HOME"], "PATH": str(path or os.environ["PATH"]), **variables}
    return subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120
    )


def bare_machine(folder: Path, **programs: str) -> Path:
    """Make a PATH with the few programs that every Linux has, and scripts in the place of others."""
    bin_ = folder / "bin"
    bin_.mkdir()
    for program in ("bash", "cat", "dirname", "grep", "id", "mktemp", "rm", "tail", "tee", "awk"):
        (bin_ / program).symlink_to(shutil.which(program) or "")
    for program, script in programs.items():
        (bin_ / program).write_text(f"#!{shutil.which('bash')}\n{script}\n")
        (bin_ / program).chmod(0o755)
    return bin_


def test_make_alone_lists_every_target_with_one_line() -> None:
    done = run(shutil.which("make") or "make", TERM="dumb")
    declared = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert declared
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()] == declared[1].split()
    assert all(len(line.split()) > 3 for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("variables", "options"),
    [((), ""), (("KILL=1",), "--kill"), (("STORE=s3",), "--store='s3'"), (("STORE=s3", "KILL=1"), "--kill --store='s3'")],
    ids=str,
)
def test_variables_of_the_demo_are_its_options(variables: tuple[str, ...], options: str) -> None:
    done = run(shutil.which("make") or "make", "--dry-run", "demo", *variables)
    assert done.stdout.splitlines()[-1].split() == f".venv/bin/python -m demo {options}".split()


def test_without_python_the_message_says_what_to_install(tmp_path: Path) -> None:
    done = run("bash", "tools/bootstrap.sh", "setup", path=bare_machine(tmp_path))
    assert done.returncode == 1
    assert "Python 3.11, 3.12 or 3.13 with the venv module is needed" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


@pytest.mark.parametrize("version", ["(3, 10)", "(3, 14)"])
def test_a_python_of_another_version_is_not_taken(tmp_path: Path, version: str) -> None:
    # The real interpreter, told that it is another one: the condition itself is what is tested.
    real = shutil.which("python3")
    fake = f'[ "$1" = -c ] && exec {real} -c "import sys; sys.version_info = {version}; exec(sys.argv[1])" "$2"\nexit 3'
    done = run("bash", "tools/bootstrap.sh", "setup", path=bare_machine(tmp_path, python3=fake))
    assert done.returncode == 1
    assert "Python 3.11, 3.12 or 3.13" in done.stderr


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ({}, r"git.*apt-get install .*git"),
        ({"git": "exit 0", "openssl": "exit 0"}, r"openjdk-17-jre-headless"),
        (
            {"git": "exit 0", "openssl": "exit 0", "java": "echo 'openjdk version \"11.0.2\"' >&2"},
            r"openjdk-17-jre-headless",
        ),
        (
            _BUT_CONTAINER_TOOLS,
            r"apt-get install .*buildah.*maven.*Docker engine .*`docker` was not found",
        ),
        (
            _BUT_CONTAINER_TOOLS | {"docker": "echo 20.10.24"},
            r"apt-get install .*buildah.*the Docker engine is 20\.10\.24.*needs 23 or newer",
        ),
        (
            _BUT_CONTAINER_TOOLS | {"docker": "echo 29.1.2"},
            r"missing: mvn\. On Debian, as root: apt-get install --no-install-recommends maven\n",
        ),
    ],
    ids=["nothing", "no Java", "old Java", "no container tools", "old Docker", "Docker without Maven"],
)
def test_a_missing_program_is_named_with_the_command_that_installs_it(tmp_path: Path, programs: dict[str, str], said: str) -> None:
    path = bare_machine(tmp_path, **programs)
    python = str(ROOT / ".venv" / "bin" / "python")
    ask = """
import sys
from tools.prerequisites import MissingPrerequisiteError, provide
try:
    provide("test")
except MissingPrerequisiteError as error:
    sys.exit(str(error))
"""
    done = run(python, "-c", ask, path=path)
    assert done.returncode == 1
    assert re.search(said, done.stderr, re.DOTALL), done.stderr


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give `tools.setup` another folder for its environment, and list its commands instead of running them."""
    ran: list[str] = []

    def note(*command: str | Path) -> None:
        ran.append(" ".join(map(str, command)))
        if "venv" in command:
            setup.PYTHON.parent.mkdir(parents=True)
            setup.PYTHON.symlink_to(sys.executable)
        if "--editable" in command and "broken" in ran:
            raise DevclusterError("no")

    monkeypatch.setattr(setup, "_run", note)
    monkeypatch.delenv("SPARK_DRAIN_PHASES", raising=False)
    for name, below in (("VENV", "."), ("PYTHON", "bin/python"), ("STAMP", setup.STAMP.name)):
        monkeypatch.setattr(setup, name, tmp_path / ".venv" / below)
    return ran


def test_packages_come_with_hashes_and_only_once(commands: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert setup.main("setup") == 0
    assert [command.partition(" install ")[2] or command for command in commands] == [
        f"{sys.executable} -m venv {setup.VENV}",
        "--quiet --disable-pip-version-check --require-hashes -r tools/uv.lock",
        f"--quiet --python {setup.PYTHON} --compile-bytecode --require-hashes -r requirements.lock",
        f"--quiet --python {setup.PYTHON} --no-deps --no-build-isolation --editable .",
    ]
    commands.clear()
    assert setup.main("setup") == 0
    assert commands == []
    assert "up to date" in capsys.readouterr().err


def test_an_interrupted_setup_goes_on_with_the_environment_it_made(commands: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    commands.append("broken")
    assert setup.main("setup") == 1
    assert capsys.readouterr().err.endswith("no\n")
    commands.clear()
    assert setup.main("setup") == 0
    assert [command for command in commands if " -m venv " in command] == []
    assert len(commands) == 3


def test_an_unknown_check_is_refused_with_the_list() -> None:
    done = run(str(ROOT / ".venv" / "bin" / "python"), "-m", "tools.lint", "mypi")
    assert done.returncode == 2
    assert re.search(r"no such check: mypi; there are ruff, .*mypy", done.stderr)


PASSED = "===== 3 passed in 1.20s ====="
FAILED = "===== 1 failed, 2 passed in 61.20s (0:01:01) ====="


@pytest.mark.parametrize(
    ("lint", "tests", "code", "last"),
    [
        ("exit 0", f"echo '{PASSED}'", 0, PASSED),
        ("exit 0", f"echo '{FAILED}'; echo 'make: *** [Makefile:19: test] Error 1' >&2; exit 2", 1, FAILED),
        ("exit 2", f"echo '{PASSED}'", 1, PASSED),
    ],
    ids=["all pass", "a test fails", "lint fails"],
)
def test_ci_fails_with_either_and_ends_with_pytest_s_own_line(tmp_path: Path, lint: str, tests: str, code: int, last: str) -> None:
    # A copy: the script goes to its own repository's folder.
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    path = bare_machine(tmp_path, make=f'case "$1" in lint) {lint} ;; test) {tests} ;; esac')
    done = run("bash", ".ci/run", path=path, folder=tmp_path)
    assert done.returncode == code
    assert done.stdout.splitlines()[-1] == last
