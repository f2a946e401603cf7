"""``python -m tools.lock``: write every requirements.lock anew from what is declared."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_LOCK = "requirements.lock"
# Images get the versions that the tests run with: the first lock constrains the others.
LOCKS: dict[str, tuple[str, ...]] = {
    _LOCK: ("pyproject.toml", "--universal", "--all-extras", "--group", "dev", "--upgrade"),
    "operator/requirements.lock": ("pyproject.toml", "--universal", "--extra", "operator", "--constraint", _LOCK),
    "examples/requirements.lock": ("examples/requirements.in", "pyproject.toml", "--universal", "--extra", "agent", "--constraint", _LOCK),
}


def main() -> int:
    """Resolve for every supported Python at once; the files name no index, so that any mirror serves them."""
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "compile", "--quiet", "--python-version", "3.11"]
    plain = ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    for lock, arguments in LOCKS.items():
        done = subprocess.run([*uv, *arguments, *plain, "--output-file", lock], cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
