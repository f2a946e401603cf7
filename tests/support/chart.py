"""What the chart installs, without its pods having to run."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from devcluster import gobuild
from tests.support.apiserver import ROOT, ApiServer


@contextmanager
def installed(server: ApiServer, namespace: str, **values: Any) -> Iterator[None]:
    """Apply what the chart renders with these values; all of it has the name of the namespace."""
    helm = gobuild.build(gobuild.HELM) / "helm"
    command = [str(helm), "template", "spark-drain", str(ROOT / "charts/spark-drain"), "--namespace", namespace, "--values", "-"]
    given = yaml.safe_dump({"crds": {"enabled": False}, "fullnameOverride": namespace, **values})
    manifests = subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout
    server.run_kubectl("apply", "-f", "-", text=manifests)
    yield
    server.run_kubectl("delete", "--wait=false", "-f", "-", text=manifests)
