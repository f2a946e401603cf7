"""kind-config.yaml, read by kind's own loader."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

from devcluster.paths import REPOSITORY
from devcluster.versions import KUBERNETES


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "devcluster", "check-kind-config", *map(str, arguments)]
    return subprocess.run(command, check=False, cwd=REPOSITORY, capture_output=True, text=True)


def test_ours_has_one_control_plane_and_two_workers() -> None:
    done = check()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("kind-config.yaml: 1 control plane, 2 workers\n")


def test_its_nodes_are_of_the_tested_minor_version_and_made_for_our_kind() -> None:
    """An image is made for one release of kind: its release notes have the digests."""
    text = (REPOSITORY / "kind-config.yaml").read_text()
    (image,) = {node["image"] for node in yaml.safe_load(text)["nodes"]}
    assert re.fullmatch(rf"kindest/node:v{KUBERNETES.rpartition('.')[0]}\.\d+@sha256:[0-9a-f]{{64}}", image)
    required = re.search(r"sigs.k8s.io/kind (v\S+)", (REPOSITORY / "devcluster" / "go" / "kind" / "go.mod").read_text())
    assert required
    assert f"release notes of kind {required[1]}:" in text


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
