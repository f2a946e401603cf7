"""What every cluster has, whatever provides it: a folder, and a kubeconfig in it."""

import shutil
from pathlib import Path

from devcluster.errors import DevclusterError


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

    def forget(self) -> None:
        """Remove the folder.

        Raises
        ------
        DevclusterError
            If something of it stays.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.exists():
            raise DevclusterError(f"{self.folder} cannot be removed: may you write there?")
