"""kubectl, the only way in which the demonstration talks to the cluster."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.errors import DemoError


@dataclass(frozen=True)
class Kubectl:
    """kubectl in one namespace.

    Parameters
    ----------
    program : Path
        The program.
    environment : mapping of str to str
        With ``KUBECONFIG``.
    namespace : str
        Where every command applies.
    """

    program: Path
    environment: Mapping[str, str]
    namespace: str

    def run(self, *arguments: str | Path, text: str | None = None) -> str:
        """Return what a command prints.

        Raises
        ------
        DemoError
            If it fails; the message has what kubectl says.
        """
        command = self._command(arguments)
        done = subprocess.run(command, input=text, env=dict(self.environment), capture_output=True, text=True, check=False)
        if done.returncode:
            raise DemoError(f"`kubectl {' '.join(command[1:])}` failed: {done.stderr.strip()}")
        return done.stdout

    def get(self, *arguments: str) -> Any:
        """Return objects as kubectl prints them in JSON."""
        return json.loads(self.run("get", *arguments, "--output=json"))

    def apply(self, *objects: Mapping[str, Any]) -> str:
        """Apply manifests."""
        return self.run("apply", "--filename=-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def start(self, *arguments: str, stdin: bool = False, stderr: int = subprocess.DEVNULL) -> "subprocess.Popen[str]":
        """Start a command whose output is read while it runs; the caller ends it."""
        source = subprocess.PIPE if stdin else subprocess.DEVNULL
        # A session of its own: Ctrl-C must reach this program first, which then ends its helpers in order.
        return subprocess.Popen(
            self._command(arguments),
            env=dict(self.environment),
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def _command(self, arguments: tuple[str | Path, ...]) -> list[str]:
        return [str(self.program), f"--namespace={self.namespace}", *(str(word) for word in arguments)]
