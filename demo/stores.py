"""Where the flights job may have its checkpoint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from demo import manifests
from devcluster.images.recipes import EXAMPLE, EXAMPLE_S3

_HADOOP = "spark.hadoop."
# Hadoop's shell insists on a core-site.xml, which an image of Spark does not have.
_SHELL = """
echo '<configuration/>' > /tmp/core-site.xml
exec java -cp "/tmp:$SPARK_HOME/jars/*" org.apache.hadoop.fs.FsShell "$@"
"""


@dataclass(frozen=True, kw_only=True)
class Store:
    """A store, and what the job needs for it.

    Parameters
    ----------
    root : str
        URI of the folder below which each namespace has one.
    image : str
        The pipeline image in which it can be reached.
    remover : tuple of str
        Command that removes a folder, whose path or URI follows, in the tools pod.
    objects : tuple of mapping
        To be applied in the job's namespace.
    change : mapping
        Merge patch for the application's manifest.
    """

    root: str
    image: str
    remover: tuple[str, ...]
    objects: tuple[Mapping[str, Any], ...] = ()
    change: Mapping[str, Any] = field(default_factory=dict)

    def checkpoint(self, namespace: str) -> str:
        """Return the URI of the checkpoint of the job in a namespace."""
        return f"{self._folder(namespace)}/checkpoint"

    def removal(self, namespace: str) -> list[str]:
        """Return the command that removes all that a job in a namespace has left."""
        return [*self.remover, self._folder(namespace).removeprefix("file://")]

    @property
    def environment(self) -> Sequence[Mapping[str, Any]]:
        """Where a container that is to reach the store gets its environment from."""
        found: Sequence[Mapping[str, Any]] = self.change.get("spec", {}).get("driver", {}).get("envFrom", ())
        return found

    def _folder(self, namespace: str) -> str:
        return f"{self.root}/{namespace}"


def _s3() -> Store:
    (change,) = manifests.load("s3/application")
    confs = [f"-D{key.removeprefix(_HADOOP)}={value}" for key, value in change["spec"]["sparkConf"].items() if key.startswith(_HADOOP)]
    return Store(
        root="s3a://checkpoints",
        image=EXAMPLE_S3,
        remover=("sh", "-c", _SHELL, "sh", *confs, "-rm", "-r", "-f", "-skipTrash"),
        objects=tuple(manifests.load("s3/secret")),
        change=change,
    )


SHARED_FOLDER = Store(root="file:///mnt/shared", image=EXAMPLE, remover=("rm", "-rf"))
S3 = _s3()
STORES = {"folder": SHARED_FOLDER, "s3": S3}
"""By the names that the command line has for them."""
