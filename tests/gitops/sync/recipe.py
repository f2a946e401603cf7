"""What docs/gitops-upgrade.md says to commit, read from the page itself."""

import re
from typing import Any

import yaml

from tests.operator.scripted_kubeflow import application_body
from tests.support.apiserver import ROOT

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HOOK = "argocd.argoproj.io/hook"
NAME = "clicks"


def _blocks(language: str) -> list[str]:
    page = (ROOT / "docs" / "gitops-upgrade.md").read_text()
    return [text for found, text in _BLOCK.findall(page) if found == language]


def _documents() -> list[dict[str, Any]]:
    return [document for block in _blocks("yaml") for document in yaml.safe_load_all(block)]


def commands(first: str) -> str:
    """Return the commands of the page that have this in them."""
    (found,) = [block for block in _blocks("") if first in block]
    return found


def hook(kind: str, **spec: Any) -> dict[str, Any]:
    """Return the PipelineDrain that is the hook of a kind, with changes to its spec."""
    (found,) = [body for body in _documents() if body["metadata"].get("annotations", {}).get(_HOOK) == kind]
    return found | {"spec": found["spec"] | spec}


def application(image: str, **annotations: str) -> dict[str, Any]:
    """Return the page's fragment of a SparkApplication, made whole."""
    (found,) = [body for body in _documents() if body.get("kind") == "SparkApplication"]
    body = application_body(found["metadata"]["name"], image=image, **found["spec"])
    return body | {"metadata": found["metadata"] | {"annotations": annotations}}


def protected(image: str) -> dict[str, Any]:
    """Return an application with the annotation that the page gives."""
    (found,) = [body for body in _documents() if body.keys() == {"metadata"}]
    return application(image, **found["metadata"]["annotations"])
