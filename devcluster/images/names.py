"""Names of images, as registries and nodes have them."""

# What Kubernetes puts before a name without a registry.
_DEFAULT_REGISTRY = "docker.io"


def registry_path(name: str) -> str:
    """Return a name as its registry has it: without the registry, and short ones in ``library/``."""
    path = name.partition("/")[2] if _has_registry(name) else name
    return path if "/" in path else f"library/{path}"


def full_name(name: str) -> str:
    """Return a name as the kubelet asks for it: with its registry."""
    return name if _has_registry(name) else f"{_DEFAULT_REGISTRY}/{registry_path(name)}"


def _has_registry(name: str) -> bool:
    # Only with a dot in it is the first part of a path a registry.
    first, slash, _ = name.partition("/")
    return bool(slash) and "." in first
