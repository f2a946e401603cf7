"""``python -m tools.manifests``: write the manifests that are made from other files of the repository."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from devcluster import gobuild
from tools.chart import render

ROOT = Path(__file__).resolve().parent.parent
ARGOCD = ROOT / "contrib/argocd"
_CHART = ROOT / "charts/spark-drain"
_WRITTEN = "# Written by python -m tools.manifests from {}.\n"
_OF_HELM = ("helm.sh/chart", "app.kubernetes.io/managed-by")
DEFINITIONS = ("executorplacement.yaml", "pipelinedrain.yaml")
_GROUPS = {"ExecutorPlacement": "sparkdrain.io", "PipelineDrain": "sparkdrain.io", "SparkApplication": "sparkoperator.k8s.io"}


class _Dumper(yaml.SafeDumper):
    """Writes lists indented and texts of several lines as blocks."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _dumped(*objects: dict[str, Any]) -> str:
    return "---\n".join(yaml.dump(each, Dumper=_Dumper, sort_keys=False, width=10_000) for each in objects)


def definition(name: str) -> str:
    """Return the chart's copy of a CustomResourceDefinition."""
    return (ROOT / "crds" / name).read_text()


def _installed(*settings: str) -> list[dict[str, Any]]:
    """Return what the chart installs besides CustomResourceDefinitions, without Helm's own labels."""
    helm = gobuild.build(gobuild.HELM) / "helm"
    rendered = render(helm, _CHART, ("--set", ",".join(("crds.enabled=false", *settings))))
    objects = [each for each in yaml.safe_load_all(rendered) if each]
    for each in objects:
        for name in _OF_HELM:
            each["metadata"]["labels"].pop(name, None)
    return objects


def operator() -> str:
    """Return the operator for kustomize."""
    return _WRITTEN.format("charts/spark-drain with its default values") + _dumped(*_installed())


def node_watch(*, added: bool) -> str:
    """Return what the watch of nodes adds to the operator, or what it changes of it."""
    before = {(each["kind"], each["metadata"]["name"]): each for each in _installed()}
    found = []
    for each in _installed("nodeWatch.enabled=true"):
        known = before.get((each["kind"], each["metadata"]["name"]))
        if (known is None) is added and known != each:
            found.append(each)
    return _WRITTEN.format("charts/spark-drain with nodeWatch.enabled") + _dumped(*found)


def argocd_cm() -> str:
    """Return the entries of Argo CD's ConfigMap: the health check and the actions of each kind."""
    data = {}
    for kind, group in _GROUPS.items():
        data[f"resource.customizations.health.{group}_{kind}"] = (ARGOCD / kind / "health.lua").read_text()
        actions = {path.stem: path.read_text() for path in sorted((ARGOCD / kind / "actions").glob("*.lua"))}
        discovery = actions.pop("discovery")
        definitions = [{"name": name, "action.lua": script} for name, script in actions.items()]
        data[f"resource.customizations.actions.{group}_{kind}"] = _dumped({"discovery.lua": discovery, "definitions": definitions})
    labels = {"app.kubernetes.io/name": "argocd-cm", "app.kubernetes.io/part-of": "argocd"}
    metadata = {"name": "argocd-cm", "namespace": "argocd", "labels": labels}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return _WRITTEN.format("the scripts beside it") + _dumped(body)


MANIFESTS: dict[Path, Callable[[], str]] = {
    **{_CHART / "files/crds" / name: partial(definition, name) for name in DEFINITIONS},
    ROOT / "kustomize/base/operator.yaml": operator,
    ROOT / "kustomize/node-watch/rights.yaml": partial(node_watch, added=True),
    ROOT / "kustomize/node-watch/operator.yaml": partial(node_watch, added=False),
    ARGOCD / "argocd-cm.yaml": argocd_cm,
    _CHART / "files/argocd-cm.yaml": argocd_cm,
}
"""What is written, and what makes its text."""


def main() -> int:
    """Write all of them."""
    for path, make in MANIFESTS.items():
        path.write_text(make())
    return 0


if __name__ == "__main__":
    sys.exit(main())
