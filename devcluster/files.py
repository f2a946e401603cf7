"""Writing configuration."""

from pathlib import Path


def write_if_changed(path: Path, text: str) -> None:
    """Write a file unless it has this content already.

    kube-proxy ends when its configuration is touched, so that a second `up`
    would take the cluster's Services away.
    """
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
