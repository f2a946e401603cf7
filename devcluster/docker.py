"""The Docker engine: whether it will do, and what it is asked."""

import os
import re
import subprocess

from devcluster.errors import DevclusterError, MissingPrerequisiteError

OLDEST = 23
_ANSWER_SECONDS = 20.0


def version() -> str:
    """Return the version of the engine; MissingPrerequisiteError if none answers."""
    try:
        answer = _ask("version", "--format", "{{.Server.Version}}")
    except OSError as error:
        raise MissingPrerequisiteError("`docker` was not found") from error
    except subprocess.TimeoutExpired as error:
        raise MissingPrerequisiteError(f"the Docker engine did not answer within {_ANSWER_SECONDS:.0f} s") from error
    if answer.returncode:
        raise MissingPrerequisiteError(f"no Docker engine answers: {answer.stderr.strip()}")
    return answer.stdout.strip()


def lacks() -> str:
    """Return what keeps the Docker engine from being used here, or an empty string."""
    try:
        found = version()
        plugin = _ask("buildx", "version")
    except MissingPrerequisiteError as error:
        return str(error)
    except subprocess.TimeoutExpired:
        return f"`docker buildx version` did not answer within {_ANSWER_SECONDS:.0f} s"
    number = re.match(r"\d+(?=\.)", found)
    if number is None or int(number[0]) < OLDEST:
        return f"the Docker engine is {found or 'of no version'}, and `docker build --build-context` needs {OLDEST} or newer"
    if plugin.returncode:
        return "Docker's buildx plugin is missing (package docker-buildx of Debian, docker-buildx-plugin of Docker)"
    return ""


def require() -> None:
    """Raise MissingPrerequisiteError unless the Docker engine will do."""
    missing = lacks()
    if missing:
        raise MissingPrerequisiteError(f"kind cannot be used: {missing}\nWithout Docker: --provider embedded, as root")


def run(*arguments: str, settings: dict[str, str] | None = None) -> str:
    """Run the docker command and return what it prints; DevclusterError with its last lines if it fails."""
    try:
        done = subprocess.run(["docker", *arguments], check=False, capture_output=True, text=True, env=os.environ | (settings or {}))
    except OSError as error:
        raise MissingPrerequisiteError("`docker` was not found") from error
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
        raise DevclusterError(f"`docker {' '.join(arguments)}` failed:\n{tail}")
    return done.stdout


def image_id(name: str) -> str:
    """Return what a name stands for in the engine, or an empty string."""
    try:
        return run("image", "inspect", "--format", "{{.Id}}", name).strip()
    except DevclusterError as error:
        if "no such image" in str(error).lower():
            return ""
        raise


def _ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["docker", *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False, capture_output=True, text=True, timeout=_ANSWER_SECONDS)
