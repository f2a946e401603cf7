"""The engines of Argo CD and Flux, built from their modules."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from devcluster import gobuild
from tools.manifests import ARGOCD

Lua = Callable[[str, str, dict[str, Any]], Any]


def run(program: str, *arguments: object, given: dict[str, Any]) -> "subprocess.CompletedProcess[str]":
    """Run a program of devcluster/go/gitops on an object."""
    command = [str(gobuild.build(gobuild.GITOPS) / program), *(str(argument) for argument in arguments)]
    return subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False, timeout=60)


def answer(program: str, *arguments: object, given: dict[str, Any]) -> Any:
    """Return what a program that succeeds answers."""
    done = run(program, *arguments, given=given)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def lua() -> Lua:
    """Run a script of contrib/argocd on an object: ``lua("health", "PipelineDrain/health.lua", body)``."""

    def on_object(kind_of_script: str, script: str, body: dict[str, Any]) -> Any:
        return answer("argocd-lua", kind_of_script, ARGOCD / script, given=body)

    return on_object
