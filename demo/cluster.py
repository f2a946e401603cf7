"""The cluster that the demonstration runs on: the one it is given, or devcluster's."""

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from demo.errors import DemoError
from demo.kubectl import Kubectl
from demo.stores import S3, SHARED_FOLDER, Store
from devcluster import clusters, demo_dependencies, gobuild
from devcluster.errors import DevclusterError
from devcluster.images import loading
from devcluster.images.recipes import EXAMPLE, OPERATOR, RECIPES
from devcluster.progress import Progress

REPOSITORY = Path(__file__).resolve().parent.parent
CHART = REPOSITORY / "charts" / "spark-drain"
RELEASE = "spark-drain"
DEMO_NAMESPACE = "spark-drain-demo"
TEST_NAMESPACE = "spark-drain-e2e"
# Both, always: kubeflow's operator would otherwise be restarted each time the other one is used.
_JOB_NAMESPACES = (DEMO_NAMESPACE, TEST_NAMESPACE)


@dataclass(frozen=True)
class Cluster:
    """A cluster with Kafka and kubeflow's Spark operator.

    Parameters
    ----------
    kubectl_program, helm_program : Path
        Programs that talk to it.
    environment : mapping of str to str
        With ``KUBECONFIG``.
    operator_image, example_image : str
        References that its nodes can pull.
    """

    kubectl_program: Path
    helm_program: Path
    environment: Mapping[str, str]
    operator_image: str = OPERATOR
    example_image: str = EXAMPLE

    def kubectl(self, namespace: str) -> Kubectl:
        """Return kubectl in one namespace."""
        return Kubectl(self.kubectl_program, self.environment, namespace)

    def install_operator(self, *values: str) -> None:
        """Install the chart, or bring it up to date, and wait until it runs.

        Parameters
        ----------
        *values : str
            Values that are not the chart's own, as ``helm --set`` takes them.

        Raises
        ------
        DemoError
            If it does not; the message has what helm or kubectl says.
        """
        repository, _, tag = self.operator_image.rpartition(":")
        command = [str(self.helm_program), "upgrade", "--install", RELEASE, str(CHART), "--namespace", RELEASE, "--create-namespace"]
        command += ["--set", f"image.repository={repository},image.tag={tag},image.pullPolicy=IfNotPresent"]
        command += [word for value in values for word in ("--set", value)]
        # The tag stays the same when the image changes: the pod must be of this moment.
        command += ["--set-string", f"podAnnotations.installed={time.time_ns()}"]
        done = subprocess.run(command, env=dict(self.environment), capture_output=True, text=True, check=False)
        if done.returncode:
            raise DemoError(f"helm could not install {CHART}: {done.stderr.strip()}")
        self.kubectl(RELEASE).run("rollout", "status", "deployment", "--timeout=120s")


def given(kubeconfig: Path, operator_image: str, example_image: str) -> Cluster:
    """Return a cluster that somebody else has set up.

    Raises
    ------
    DemoError
        If the file or a program that is needed is missing.
    """
    if not kubeconfig.is_file():
        raise DemoError(f"kubeconfig {kubeconfig}: no such file")
    programs = {name: shutil.which(name) for name in ("kubectl", "helm")}
    for name, path in programs.items():
        if path is None:
            raise DemoError(f"{name} is missing: install it, or leave the kubeconfig away to use devcluster's own")
    environment = os.environ | {"KUBECONFIG": str(kubeconfig.resolve())}
    return Cluster(Path(programs["kubectl"] or ""), Path(programs["helm"] or ""), environment, operator_image, example_image)


def own(name: str = clusters.DEFAULT_NAME, provider: str | None = None, *, store: Store = SHARED_FOLDER) -> Cluster:
    """Start devcluster's cluster, or what of it does not run, with everything the job needs.

    Parameters
    ----------
    name : str
        The cluster's.
    provider : str or None
        ``kind`` or ``embedded``; by default kind where a Docker engine will do.
    store : Store
        Where the job has its checkpoint.

    Raises
    ------
    DemoError
        If it cannot be started; the message says what is missing.
    """
    try:
        chosen, cluster = clusters.create(name, provider, control_plane_only=False)
        assert not isinstance(cluster, clusters.LoopbackCluster)
        images = (OPERATOR, store.image)
        more = demo_dependencies.S3_STEPS if store is S3 else 0
        progress = Progress(clusters.STEPS[chosen] + demo_dependencies.STEPS[chosen] + more + 2 * len(images) + 1)
        needed = [RECIPES[image] for image in (*images, *demo_dependencies.images(chosen))] if chosen == "embedded" else []
        with loading.built_beside(needed):
            cluster.up(progress)
        demo_dependencies.install(cluster, _JOB_NAMESPACES, progress)
        if store is S3:
            demo_dependencies.install_s3(cluster, progress)
        loading.load(cluster, [RECIPES[image] for image in images], progress)
        with progress.step("building helm (up to a minute the first time)"):
            helm = gobuild.build(gobuild.HELM) / "helm"
    except DevclusterError as error:
        raise DemoError(str(error)) from error
    kubectl = gobuild.build(gobuild.KUBE) / "kubectl"
    return Cluster(kubectl, helm, os.environ | {"KUBECONFIG": str(cluster.kubeconfig)}, example_image=store.image)


def is_up() -> bool:
    """Say whether devcluster's cluster runs."""
    return clusters.provider_of(clusters.DEFAULT_NAME) is not None and clusters.find(clusters.DEFAULT_NAME).is_up()


def down() -> None:
    """End devcluster's cluster; its images stay."""
    clusters.find(clusters.DEFAULT_NAME).down()
