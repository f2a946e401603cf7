"""The program counts where a function runs on the driver: its arguments, its files, the environment variables that they name."""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from spark_drain_agent.spark_internals.application_modules import sources
from spark_drain_agent.spark_internals.program import look_at_program

FILES = {
    "program.py": """
import json
import os
import sys
import settings
from stages import first
from spark_drain_agent.spark_internals.driver_code import batch_function_digest

def write(frame, batch_id):
    from stages.second import save
    save(frame, first.named(settings.TABLE), os.environ["SALES_OUTPUT"], append=True)

print(batch_function_digest(write))
""",
    "settings.py": """
import json
from pathlib import Path

TABLE = json.loads(Path(__file__).with_name("settings.json").read_text())["table"]
""",
    "settings.json": '{"table": "sales"}',
    "rates.yaml": "low: 0.1",
    "given.conf": "key=a",
    "stages/__init__.py": "",
    "stages/first.py": "import os\n\nRATES = '../rates.yaml'\n\ndef named(table):\n    return table + os.getenv('SALES_SUFFIX', '')\n",
    "stages/second.py": "def save(frame, table, output, append):\n    frame.write.parquet(f'{output}/{table}')\n",
}
OF_ONE_START = {
    "HOSTNAME": "clicks-driver-1",
    "SALES_PORT": "tcp://10.96.0.7:80",
    "SALES_SERVICE_HOST": "10.96.0.7",
    "SPARK_LOCAL_DIRS": "/var/data/spark-1",
    "SALES_TOKEN": "1",
    "COLUMNS": "80",
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "stages").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path / "program.py"


def digest(program: Path, *arguments: str, **variables: str) -> str:
    environment = {**os.environ, **variables}
    run = [sys.executable, str(program), *arguments]
    return subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_what_was_loaded_counts_as_it_was_when_the_first_query_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade lays new files down beneath the application that still runs."""
    monkeypatch.syspath_prepend(str(tmp_path))
    module, settings = tmp_path / "rates_of_a_test.py", tmp_path / "rates.json"
    module.write_text("from pathlib import Path\nRATE = Path(__file__).with_name('rates.json').read_text()\n")
    settings.write_text("1")
    importlib.import_module(module.stem)
    loaded = {f"{path.name.removesuffix('.py')} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in (module, settings)}
    look_at_program()
    settings.write_text("2")
    assert not loaded <= {*sources([module.stem], ())}
    settings.write_text("1")
    module.write_text("RATE = '100'\n")
    assert loaded <= {*sources([module.stem], ())}


def test_a_start_is_the_same_version(program: Path) -> None:
    run = "--run={}-1111-4222-8333-444455556666"
    assert digest(program, "--out=a", run.format("6f1c0000")) == digest(program, "--out=a", run.format("7f1c0000"))


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("program.py", "append=True", "append=False"),
        ("settings.json", "sales", "returns"),
        ("rates.yaml", "0.1", "0.2"),
        ("given.conf", "a", "b"),
        ("stages/first.py", "return table", "return 'x' + table"),
        ("stages/second.py", "parquet", "orc"),
    ],
)
def test_files_count(program: Path, file: str, before: str, after: str) -> None:
    given = f"--settings={program.with_name('given.conf')}"
    first = digest(program, given)
    assert before in FILES[file]
    (program.parent / file).write_text(FILES[file].replace(before, after) + "\n")
    assert digest(program, given) != first


def test_arguments_and_variables_count(program: Path) -> None:
    started = [digest(program, "--out=a"), digest(program, "--out=b")]
    started += [digest(program, SALES_OUTPUT=path) for path in ("/a", "/b")]
    started += [digest(program, SALES_SUFFIX=path) for path in ("_a", "_b")]
    assert len(set(started)) == len(started)


@pytest.mark.parametrize("name", ["LOG_TOPIC", "LOCAL_TZ", "CONTAINER_NAME", "GATEWAY_URL", "PARTITION_TOKENIZER", "SALES_PORT"])
def test_variables_that_look_like_those_of_one_start_count(program: Path, name: str) -> None:
    program.write_text(f"NAME = {name!r}\n{FILES['program.py']}")
    assert digest(program, **{name: "a"}) != digest(program, **{name: "b"})


@pytest.mark.parametrize("length", [40, 64])
def test_a_digest_is_no_uuid(program: Path, length: int) -> None:
    assert digest(program, f"--model=sha:{'0a' * (length // 2)}") != digest(program, f"--model=sha:{'0b' * (length // 2)}")


def test_what_is_of_one_start_does_not_count(program: Path) -> None:
    program.write_text(f"NAMES = {[*OF_ONE_START]}\n{FILES['program.py']}")
    assert digest(program) == digest(program, **OF_ONE_START)
    assert digest(program, SALES_PORT="5432") != digest(program, SALES_PORT="5433")


@pytest.mark.parametrize("kind", ["pipe", "zip", "module"])
def test_a_main_file_of_each_kind(program: Path, kind: str) -> None:
    """What comes from a pipe cannot be read again."""

    def run(text: str) -> str:
        program.write_text(text)
        agent = [sys.executable, "-m", "spark_drain_agent"]
        if kind == "pipe":
            command = ["bash", "-c", '"$@" <(cat program.py)', "-", *agent]
        elif kind == "module":
            command = [*agent, "-m", "program"]
        else:
            with zipfile.ZipFile(program.with_name("program.zip"), "w") as archive:
                archive.write(program, "__main__.py")
            command = [*agent, "program.zip"]
        environment = {**os.environ, "PYTHONPATH": str(program.parent)}
        done = subprocess.run(command, cwd=program.parent, env=environment, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()

    first, text = run(FILES["program.py"]), FILES["program.py"]
    assert first == run(text) != ""
    assert (run(text + "# another") == first) is (kind == "pipe")


def test_an_installed_package_that_is_the_application(program: Path, tmp_path: Path) -> None:
    """As where a wheel has all of it, and the script only calls it."""
    package = tmp_path / "lib/site-packages/sales"
    package.mkdir(parents=True)
    shutil.move(program, package / "jobs.py")
    (package / "__init__.py").touch()
    program.write_text("import sales.jobs\n")
    first = digest(program, PYTHONPATH=str(tmp_path / "lib/site-packages"))
    (package / "jobs.py").write_text(FILES["program.py"].replace("append=True", "append=False"))
    assert digest(program, PYTHONPATH=str(tmp_path / "lib/site-packages")) != first
    (package / "jobs.py").write_text(FILES["program.py"])
    assert digest(program, PYTHONPATH=str(tmp_path / "lib/site-packages")) == first
    (tmp_path / "settings.json").write_text('{"table": "returns"}')
    assert digest(program, PYTHONPATH=str(tmp_path / "lib/site-packages")) != first
