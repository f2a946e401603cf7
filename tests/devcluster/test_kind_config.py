"""kind-config.yaml, read by kind's own loader."""

import subprocess
import sys
from pathlib import Path

from devcluster.paths import REPOSITORY


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "devcluster", "check-kind-config", *map(str, arguments)]
    return subprocess.run(command, check=False, cwd=REPOSITORY, capture_output=True, text=True)


def test_ours_has_one_control_plane_and_two_workers() -> None:
    done = check()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("kind-config.yaml: 1 control plane, 2 workers\n")


def test_unknown_fields_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "kind.yaml"
    file.write_text("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodez: []\n")
    done = check(file)
    assert done.returncode == 1
    assert "field nodez not found" in done.stderr


def test_what_decodes_but_makes_no_sense_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kind.yaml"
    file.write_text("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: worker}]\n")
    done = check(file)
    assert done.returncode == 1
    assert "control-plane" in done.stderr
