"""``python -m tools.lock``: write requirements.lock from pyproject.toml."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Resolve for every supported Python at once; the file names no index, so that any mirror serves it."""
    command = [
        *(str(Path(sys.executable).with_name("uv")), "pip", "compile", "--quiet", "pyproject.toml"),
        *("--universal", "--python-version", "3.11", "--all-extras", "--group", "dev"),
        *("--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"),
        *("--upgrade", "--output-file", "requirements.lock"),
    ]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
