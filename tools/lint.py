"""``python -m tools.lint [CHECK...]``: every check of `make lint`, or only the named ones; goes on after a failure and lists them all."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from devcluster import gobuild
from devcluster.errors import DevclusterError
from devcluster.progress import Progress
from tools.chart import check_rendered
from tools.phases import phase

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
TYPED = ("metadata_store", "driver_agent", "operator", "devcluster", "demo", "tools", "tests", "examples", "benchmarks")
ACTIONLINT = gobuild.GoModule("actionlint", (("actionlint", "github.com/rhysd/actionlint/cmd/actionlint"),))


def _run(*command: str | Path) -> str | None:
    """Return None, or what the command printed when it failed."""
    environment = os.environ | {"MYPY_FORCE_COLOR": "0", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [str(part) for part in command], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return (done.stdout + done.stderr).strip() or f"exit code {done.returncode}" if done.returncode else None


def _tracked(*patterns: str) -> list[str]:
    """Return files of the repository, those not committed yet too."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(name for name in set(listed) if (ROOT / name).is_file())


def _some(kind: str, files: list[str]) -> list[str]:
    if not files:  # a pattern that matches nothing would make the check pass for ever
        raise DevclusterError(f"there is no {kind} to check")
    return files


def _hadolint() -> str | None:
    return _run(BIN / "hadolint", "--no-color", *_some("Dockerfile", _tracked("*Dockerfile", "*.Dockerfile")))


def _actionlint() -> str | None:
    # shellcheck and pyflakes would be used only where they happen to be installed.
    files = _some("workflow", _tracked(".github/workflows/*.yml", ".github/workflows/*.yaml"))
    return _run(gobuild.build(ACTIONLINT) / "actionlint", "-no-color", "-shellcheck=", "-pyflakes=", *files)


def _kind() -> str | None:
    return _run(gobuild.build(gobuild.KIND) / "check-kind-config", "kind-config.yaml")


def _helm() -> str | None:
    return _run(gobuild.build(gobuild.HELM) / "helm", "lint", "--strict", "charts/spark-drain")


CHECKS: dict[str, Callable[[], str | None]] = {
    "ruff": lambda: _run(BIN / "ruff", "check", "."),
    "format": lambda: _run(BIN / "ruff", "format", "--check", "."),
    "mypy": lambda: _run(BIN / "mypy", *TYPED),
    "layers": lambda: _run(BIN / "lint-imports", "--no-cache"),
    "yamllint": lambda: _run(BIN / "yamllint", "--strict", *_some("YAML file", _tracked("*.yaml", "*.yml", ":!charts/*/templates/*"))),
    "hadolint": _hadolint,
    "actionlint": _actionlint,
    "kind": _kind,
    "helm": _helm,
    "chart": lambda: check_rendered(gobuild.build(gobuild.HELM) / "helm", ROOT / "charts" / "spark-drain"),
}

_PROGRAMS = {"actionlint": ACTIONLINT, "kind": gobuild.KIND, "helm": gobuild.HELM, "chart": gobuild.KUBE}


def _build_ahead(modules: Sequence[gobuild.GoModule]) -> None:
    """Compile beside the checks that need one processor; what fails here, the check itself says."""
    with contextlib.suppress(DevclusterError):
        for module in modules:
            gobuild.build(module)


def main(names: Sequence[str]) -> int:
    """Run the checks; 1 when any found something."""
    if unknown := [name for name in names if name not in CHECKS]:
        print(f"no such check: {', '.join(unknown)}; there are {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    chosen = [name for name in CHECKS if not names or name in names]
    progress = Progress(len(chosen))
    ahead = [_PROGRAMS[name] for name in chosen if name in _PROGRAMS]
    threading.Thread(target=_build_ahead, args=(ahead,), daemon=True).start()
    failed = []
    for name in chosen:
        with phase(f"lint: {name}"), progress.step(name):
            try:
                found = CHECKS[name]()
            except DevclusterError as error:
                found = str(error)
        if found:
            failed.append(name)
            print(found, flush=True)
    progress.say(f"failed: {', '.join(failed)} (one alone: make lint ONLY={failed[0]})" if failed else "all checks passed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
