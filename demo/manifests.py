"""The example's manifests, adapted to where they are applied."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "flights"
FOLDER = EXAMPLE / "manifests"


def load(name: str) -> list[dict[str, Any]]:
    """Return the objects of one manifest file."""
    return [item for item in yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()) if item]


def merged(manifest: Any, patch: Any) -> Any:
    """Return a manifest after a JSON merge patch (RFC 7386), as `kubectl patch --type=merge` makes it."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(manifest) if isinstance(manifest, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def application(
    version: str, image: str, arguments: Sequence[str], conf: Mapping[str, str], *, idle: int = 0, change: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the SparkApplication of one version.

    Parameters
    ----------
    version : str
        ``v1`` or ``v2``.
    image : str
        Reference of the pipeline image.
    arguments : sequence of str
        Added to the program's; of an option that is given twice the last counts.
    conf : mapping of str to str
        Spark settings to add.
    idle : int
        Executors to add, which find no place where there are as many nodes as other executors.
    change : mapping or None
        Merge patch that comes first.
    """
    (written,) = load(f"application-{version}")
    manifest: dict[str, Any] = merged(written, change or {})
    spec = manifest["spec"]
    spec["image"] = image
    spec["arguments"] += arguments
    spec["sparkConf"] |= conf
    if idle:
        executor = spec["executor"]
        executor["instances"] += idle
        (preferred,) = executor["affinity"]["podAntiAffinity"].values()
        executor["affinity"]["podAntiAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [term["podAffinityTerm"] for term in preferred]
        }
    return manifest


def producer(image: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the Job that writes the flights."""
    (manifest,) = load("producer")
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    container["image"] = image
    container["args"] += arguments
    return manifest


def tools(image: str, environment: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the Pod for looking at topics and at the store."""
    (manifest,) = load("tools")
    (container,) = manifest["spec"]["containers"]
    container["image"] = image
    container["envFrom"] = list(environment)
    return manifest
