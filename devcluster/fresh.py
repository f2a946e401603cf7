"""What a new control plane begins with.

The first start of an empty API server takes four times as long as any later one; so one is started once, and never used but as a template.
"""

import shutil
from pathlib import Path

from devcluster import loopback
from devcluster.locks import only_one
from devcluster.paths import cache_dir

_VERSION = 1  # increase when the certificates or flags of a new control plane change
_PARTS = ("pki", "etcd")  # without the last one it is still a new control plane


def seed(folder: Path, binaries: Path) -> None:
    """Copy the template into the folder of a control plane that was never started; nothing is done to any other.

    Parameters
    ----------
    folder : Path
        The cluster's folder.
    binaries : Path
        Folder with the program ``kube``.
    """
    if (folder / _PARTS[-1]).exists():
        return
    template = _template(binaries)
    for part in _PARTS:
        draft = folder / f"{part}.draft"
        for leftover in (draft, folder / part):
            shutil.rmtree(leftover, ignore_errors=True)
        shutil.copytree(template / part, draft)
        draft.rename(folder / part)


def _template(binaries: Path) -> Path:
    template = cache_dir() / "fresh" / f"{binaries.name}-{_VERSION}"
    with only_one(template):
        if not template.is_dir():
            draft = template.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            with loopback.running(draft, binaries):
                pass
            draft.rename(template)
    return template
