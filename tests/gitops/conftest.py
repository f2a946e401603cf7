"""The engines of Argo CD and Flux, built from their modules."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devcluster import gobuild
from tools.manifests import ARGOCD

Lua = Callable[[str, str, dict[str, Any]], Any]


@pytest.fixture(scope="session")
def programs() -> Path:
    return gobuild.build(gobuild.GITOPS)


def answer(command: list[str], body: dict[str, Any]) -> Any:
    done = subprocess.run(command, input=json.dumps(body), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def lua(programs: Path) -> Lua:
    """Run a script of contrib/argocd on an object: ``lua("health", "PipelineDrain/health.lua", body)``."""

    def run(kind_of_script: str, script: str, body: dict[str, Any]) -> Any:
        return answer([str(programs / "argocd-lua"), kind_of_script, str(ARGOCD / script)], body)

    return run
