"""The upgrade by hand of docs/gitops-upgrade.md: its commands, as the page has them."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.gitops.sync import recipe
from tests.gitops.sync.conftest import GitOps
from tests.operator.scripted_kubeflow import BackgroundKubeflow

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(600)]

VERSIONS = ("example/pipeline:1", "example/pipeline:2", "example/pipeline:3")


@pytest.fixture
def shell(gitops: GitOps, tmp_path: Path) -> Mapping[str, str]:
    """What the page's commands need in their environment: kubectl, and the namespace as that of the current context."""
    server = gitops.world.server
    config = tmp_path / "kubeconfig"
    config.write_bytes(gitops.argo.kubeconfig.read_bytes())
    environment = {**gitops.argo.environment, "KUBECONFIG": str(config)}
    environment["PATH"] = os.pathsep.join([str(Path(server.kubectl).parent), environment["PATH"]])
    command = ["kubectl", "config", "set-context", "--current", f"--namespace={gitops.world.namespace}"]
    subprocess.run(command, env=environment, capture_output=True, check=True)
    return environment


def test_each_upgrade_is_a_drain_of_its_own(gitops: GitOps, shell: Mapping[str, str], tmp_path: Path) -> None:
    drain = recipe.hook("PreSync")
    (tmp_path / "drain.yaml").write_text(yaml.safe_dump(drain | {"metadata": {"generateName": "clicks-upgrade-"}}))
    version = tmp_path / "clicks-v2.yaml"
    version.write_text(yaml.safe_dump(recipe.application(VERSIONS[0])))
    subprocess.run(["kubectl", "apply", "-f", version.name], cwd=tmp_path, env=shell, capture_output=True, check=True)
    for run, image in enumerate(VERSIONS[1:]):
        agent = gitops.world.agent(f"spark-{run}", gitops.application.start(f"spark-{run}"))
        version.write_text(yaml.safe_dump(recipe.application(image)))
        with subprocess.Popen(["bash", "-c", recipe.commands("kubectl create")], cwd=tmp_path, env=shell) as upgrade:
            drain_id = agent.await_notification().drain_id
            with BackgroundKubeflow(gitops.application):
                agent.drain(drain_id)
            assert upgrade.wait(60) == 0
        assert (gitops.spec["image"], gitops.spec["suspend"]) == (image, False)
    assert len(gitops.drains) == 2
