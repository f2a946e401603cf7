"""What every cluster has, whatever provides it: a folder, and a kubeconfig in it."""

from pathlib import Path


class ClusterFolder:
    """The part of a cluster that is a folder.

    Parameters
    ----------
    folder : Path
        Its name is the cluster's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, for programs on the machine."""
        return self.folder / "kubeconfig"
