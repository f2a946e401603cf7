"""The rendered chart, as the API server sees it."""

import subprocess
from pathlib import Path
from typing import Any

import yaml

from devcluster.api import RunningControlPlane, control_plane

# What people set most; each rendering must be accepted as a whole.
VARIANTS: dict[str, tuple[str, ...]] = {
    "defaults": (),
    "namespaced": ("--set", "rbac.scope=Namespaces,watchNamespaces={one,two}"),
    "agents": ("--set", "agentNamespaces[0].namespace=one,agentNamespaces[0].serviceAccounts={spark,other}"),
    "nodes watched": ("--set", "nodeWatch.enabled=true"),
    "nodes watched, namespaced": ("--set", "nodeWatch.enabled=true,rbac.scope=Namespaces,watchNamespaces={one,two}"),
    "for Argo CD": ("--set", "argocd.customizations=true,argocd.namespace=two"),
    "everything named": (
        *("--set", "allowDelete=true,fullnameOverride=drain,commonLabels.team=data,priorityClassName=system-cluster-critical"),
        *("--set-string", "image.tag=1"),
    ),
}


def render(helm: Path, chart: Path, arguments: tuple[str, ...]) -> str:
    """Return the manifests of a release, custom resource definitions included."""
    command = [str(helm), "template", "spark-drain", str(chart), "--namespace", "spark-drain", "--include-crds", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def check_rendered(helm: Path, chart: Path) -> str | None:
    """Apply every variant to a real API server with strict field validation; None, or what it refused."""
    problems = []
    with control_plane() as plane:
        for namespace in ("spark-drain", "one", "two"):
            subprocess.run([str(plane.kubectl), "create", "namespace", namespace], env=plane.environment(), capture_output=True, check=True)
        for variant, arguments in VARIANTS.items():
            try:
                manifests = render(helm, chart, arguments)
            except subprocess.CalledProcessError as error:
                problems.append(f"{variant}: helm template failed: {error.stderr.strip()}")
                continue
            problems += [f"{variant}: {problem}" for problem in _described(manifests)]
            problems += [f"{variant}: {problem}" for problem in _refused(plane, "-f", "-", manifests=manifests)]
        for name in ("base", "node-watch"):
            problems += [f"kustomize {name}: {problem}" for problem in _refused(plane, "-k", str(chart.parents[1] / "kustomize" / name))]
    return "\n".join(problems) or None


def _refused(plane: RunningControlPlane, *what: str, manifests: str = "") -> list[str]:
    command = [str(plane.kubectl), "apply", "--server-side", "--force-conflicts", "--validate=strict", *what]
    done = subprocess.run(command, env=plane.environment(), input=manifests, capture_output=True, text=True, check=False)
    return [done.stderr.strip()] if done.returncode else []


def _described(manifests: str) -> list[str]:
    """Return what is wrong with the set of objects as such."""
    objects: list[dict[str, Any]] = [document for document in yaml.safe_load_all(manifests) if document]
    names = [
        f"{each.get('kind')} {each.get('metadata', {}).get('namespace', '')}/{each.get('metadata', {}).get('name')}" for each in objects
    ]
    problems = [f"{name} is rendered {names.count(name)} times" for name in sorted(set(names)) if names.count(name) > 1]
    unmarked = [
        name
        for name, each in zip(names, objects, strict=True)
        if each.get("kind") != "CustomResourceDefinition" and "app.kubernetes.io/name" not in each.get("metadata", {}).get("labels", {})
    ]
    return problems + [f"{name} lacks the label app.kubernetes.io/name" for name in unmarked]
