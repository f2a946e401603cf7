"""Git and Argo CD's engine, as a test uses them."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devcluster import gobuild
from tools.manifests import ARGOCD

_SECONDS = 120


class Repository:
    """A Git repository; its work tree is what a sync applies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._git("init", "--quiet")

    def commit(self, message: str, *objects: Mapping[str, Any]) -> str:
        """Commit these objects in place of those that were there; returns the revision."""
        for path in self.folder.glob("*.yaml"):
            path.unlink()
        for number, body in enumerate(objects):
            (self.folder / f"{number}-{body['metadata']['name']}.yaml").write_text(yaml.safe_dump(body))
        self._git("add", "--all")
        self._git("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", message)
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        # The settings of whoever runs the tests, such as signed commits, are not for this repository.
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", *arguments]
        return subprocess.run(command, cwd=self.folder, env=os.environ | settings, capture_output=True, text=True, check=True).stdout


@dataclass(frozen=True)
class Outcome:
    """How an operation ended."""

    phase: str
    message: str
    resources: list[dict[str, str]]

    def of(self, kind: str) -> dict[str, str]:
        """Return what the operation says of the one object of a kind."""
        (found,) = [item for item in self.resources if item["kind"] == kind]
        return found


class Operation:
    """A sync or deletion that goes on in a process."""

    def __init__(self, process: "subprocess.Popen[str]", seconds: int) -> None:
        self._process = process
        self._seconds = seconds

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def outcome(self) -> Outcome:
        """Wait until it ends."""
        try:
            out, errors = self._process.communicate(timeout=self._seconds + 30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        assert out, errors
        outcome = Outcome(**json.loads(out) | {"resources": json.loads(out)["resources"] or []})
        assert self._process.returncode == {"Succeeded": 0, "Running": 3}.get(outcome.phase, 1), outcome
        return outcome


@dataclass(frozen=True)
class ArgoApplication:
    """What Argo CD calls an application: a repository whose manifests go to a namespace."""

    repository: Repository
    kubeconfig: Path
    namespace: str
    environment: Mapping[str, str]
    scripts: Path = ARGOCD

    def start(self, *options: str, delete: bool = False, seconds: int = _SECONDS) -> Operation:
        """Begin a sync, or the deletion of the application with its resources."""
        command = [str(gobuild.build(gobuild.GITOPS) / "gitops-sync"), *(["delete"] if delete else [])]
        command += [f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}", f"--health={self.scripts}"]
        command += [f"--timeout={seconds}s", *options, str(self.repository.folder)]
        process = subprocess.Popen(command, env=dict(self.environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return Operation(process, seconds)

    def sync(self, *options: str) -> Outcome:
        """Carry out a whole sync."""
        return self.start(*options).outcome()

    def self_heal(self, kind: str, name: str) -> Outcome:
        """Do what self-heal does when one object differs from Git: synchronize that object alone, without hooks."""
        return self.sync(f"--only={kind}/{name}")
