"""Building images and bringing them to the nodes of a cluster."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from devcluster import gobuild
from devcluster.embedded.cluster import EmbeddedCluster
from devcluster.embedded.layout import INNER, NODES, Node
from devcluster.errors import DevclusterError
from devcluster.images.builders import Buildah, Docker
from devcluster.images.names import full_name
from devcluster.images.recipes import PYTHON, RECIPES, Recipe
from devcluster.kindcluster import KindCluster
from devcluster.progress import Progress

Cluster = EmbeddedCluster | KindCluster


def recipe_for(name: str, dockerfile: Path | None, context: Path | None) -> Recipe:
    """Return the recipe of a known image, or one made of the given paths.

    Raises
    ------
    DevclusterError
        If the name is unknown and no Dockerfile is given, or the file is missing.
    """
    if dockerfile is None:
        if name not in RECIPES:
            raise DevclusterError(f"no image {name!r}: one of {', '.join(sorted(RECIPES))}, or give --dockerfile and --context")
        return RECIPES[name]
    if not dockerfile.is_file():
        raise DevclusterError(f"--dockerfile {dockerfile}: no such file")
    return Recipe(name, dockerfile.resolve(), (context or dockerfile.parent).resolve(), debian=PYTHON)


def build(recipe: Recipe, *, docker: bool) -> None:
    """Build an image where the machine can."""
    (Docker() if docker else Buildah()).build(recipe)


@contextmanager
def built_beside(recipes: list[Recipe]) -> Iterator[None]:
    """Build images without an engine while the block runs; `load` builds again, and says, what has failed."""

    def build_all() -> None:
        with suppress(DevclusterError):
            for recipe in recipes:
                build(recipe, docker=False)

    beside = threading.Thread(target=build_all, daemon=True)
    beside.start()
    yield
    beside.join()


def load(cluster: Cluster, recipes: list[Recipe], progress: Progress) -> None:
    """Build images and make them available on every node.

    Parameters
    ----------
    cluster : EmbeddedCluster or KindCluster
        A cluster that runs.
    recipes : list of Recipe
        Two steps of progress each.
    progress : Progress
        Says what is going on.
    """
    for recipe in recipes:
        docker = isinstance(cluster, KindCluster)
        with progress.step(f"building image {recipe.name}"):
            build(recipe, docker=docker)
        with progress.step(f"loading image {recipe.name}"):
            if isinstance(cluster, KindCluster):
                cluster.load(recipe.name)
            else:
                Buildah().push(recipe.name, cluster.ports()["registry"])
                pull(cluster, recipe.name)


def pull(cluster: EmbeddedCluster, name: str) -> None:
    """Make every node's containerd fetch what its name stands for now."""
    ctr = gobuild.build(gobuild.CONTAINERD) / "ctr"

    def onto(node: Node) -> None:
        command: list[str | Path] = [ctr, "--address", node.socket, "--namespace", "k8s.io", "images", "pull"]
        cluster.namespace.run([*command, "--hosts-dir", INNER / "certs.d", full_name(name)])

    with ThreadPoolExecutor(len(NODES)) as pool:
        list(pool.map(onto, NODES))
