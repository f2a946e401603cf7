"""Kafka, kubeflow's Spark operator and an S3 server, for demonstrations and end-to-end tests."""

import subprocess
import time
from pathlib import Path

import yaml

from devcluster import gobuild
from devcluster.embedded.cluster import EmbeddedCluster
from devcluster.errors import DevclusterError
from devcluster.images import loading
from devcluster.images.recipes import KAFKA, RECIPES, S3, SPARK_OPERATOR, spark_operator_source
from devcluster.kindcluster import KindCluster
from devcluster.paths import PACKAGE
from devcluster.progress import Progress

KAFKA_ADDRESS = "kafka.kafka.svc:9092"
STEPS = {"embedded": 6, "kind": 4}
S3_STEPS = 3
_RELEASE = "spark-operator"
_WEBHOOK_SECONDS = 120.0
_PROBE = {
    "apiVersion": "sparkoperator.k8s.io/v1beta2",
    "kind": "SparkApplication",
    "metadata": {"name": "devcluster-probe", "namespace": "default"},
    "spec": {
        "type": "Python",
        "mode": "cluster",
        "image": "none",
        "mainApplicationFile": "local:///none.py",
        "sparkVersion": "4.2.0",
        "driver": {"cores": 1, "memory": "512m"},
        "executor": {"cores": 1, "instances": 1, "memory": "512m"},
    },
}


def images(provider: str) -> tuple[str, ...]:
    """Return the names of the images to build and load: kind's nodes fetch the chart's own image of the operator."""
    return (KAFKA,) if provider == "kind" else (KAFKA, SPARK_OPERATOR)


def install(cluster: EmbeddedCluster | KindCluster, job_namespaces: tuple[str, ...], progress: Progress) -> None:
    """Install Kafka and the Spark operator, or bring them up to date; return when they are ready.

    Parameters
    ----------
    cluster : EmbeddedCluster or KindCluster
        A cluster that runs.
    job_namespaces : tuple of str
        Where Spark applications run, besides ``default``.
    progress : Progress
        Says what is going on.

    Raises
    ------
    DevclusterError
        If something is not ready in time; the message has the state of its pods.
    """
    names = images("embedded" if isinstance(cluster, EmbeddedCluster) else "kind")
    loading.load(cluster, [RECIPES[name] for name in names], progress)
    kubectl = Kubectl(cluster.kubeconfig)
    namespaces = _remember(cluster.folder / "job-namespaces", job_namespaces)
    with progress.step("installing Kafka and kubeflow's Spark operator"):
        kubectl("apply", "-f", str(PACKAGE / "manifests" / "kafka.yaml"))
        for namespace in namespaces:
            kubectl("apply", "-f", "-", text=yaml.safe_dump(_namespace(namespace)))
        _install_operator(cluster.kubeconfig, namespaces)
        for namespace in namespaces:
            kubectl("apply", "--namespace", namespace, "-f", str(PACKAGE / "manifests" / "spark-jobs.yaml"))
    with progress.step("waiting for Kafka and the Spark operator"):
        kubectl.wait("kafka", "statefulset/kafka")
        for deployment in ("controller", "webhook"):
            kubectl.wait(_RELEASE, f"deployment/spark-operator-{deployment}")
        _await_webhook(kubectl)


def install_s3(cluster: EmbeddedCluster | KindCluster, progress: Progress) -> None:
    """Install an S3 server with the bucket ``checkpoints``, or bring it up to date; return when it is ready.

    Parameters
    ----------
    cluster : EmbeddedCluster or KindCluster
        A cluster that runs.
    progress : Progress
        Says what is going on.

    Raises
    ------
    DevclusterError
        If it is not ready in time; the message has the state of its pod.
    """
    loading.load(cluster, [RECIPES[S3]], progress)
    kubectl = Kubectl(cluster.kubeconfig)
    with progress.step("installing the S3 server"):
        kubectl("apply", "-f", str(PACKAGE / "manifests" / "s3.yaml"))
        kubectl.wait("s3", "statefulset/s3")


class Kubectl:
    """Runs kubectl as the administrator.

    Parameters
    ----------
    kubeconfig : Path
        Which cluster.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.program = gobuild.build(gobuild.KUBE) / "kubectl"

    def __call__(self, *arguments: str, text: str | None = None) -> str:
        """Run it and return what it prints; DevclusterError if it fails."""
        command = [str(self.program), "--kubeconfig", str(self.kubeconfig), *arguments]
        return _run(command, text)

    def wait(self, namespace: str, workload: str) -> None:
        """Wait until a workload is rolled out; DevclusterError with its pods if it is not after 5 minutes."""
        try:
            self("rollout", "status", "--namespace", namespace, workload, "--timeout=300s")
        except DevclusterError as error:
            pods = self("get", "pods,events", "--namespace", namespace, "-o", "wide")
            raise DevclusterError(f"{error}\n{pods}") from error


def _remember(file: Path, more: tuple[str, ...]) -> tuple[str, ...]:
    # Added up: what one caller asked for must not end another one's applications.
    known = file.read_text().split() if file.exists() else []
    namespaces = tuple(dict.fromkeys(("default", *known, *more)))
    file.write_text("\n".join(namespaces))
    return namespaces


def _await_webhook(kubectl: Kubectl) -> None:
    # Ready pods are not enough: the way to them through the Service is made a moment later.
    deadline = time.monotonic() + _WEBHOOK_SECONDS
    while True:
        try:
            kubectl("create", "--dry-run=server", "-f", "-", text=yaml.safe_dump(_PROBE))
            return
        except DevclusterError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def _namespace(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _install_operator(kubeconfig: Path, namespaces: tuple[str, ...]) -> None:
    helm = gobuild.build(gobuild.HELM) / "helm"
    chart = spark_operator_source() / "charts" / "spark-operator-chart"
    values = {"spark": {"jobNamespaces": list(namespaces), "serviceAccount": {"name": "spark"}}}
    command = [str(helm), "upgrade", "--install", _RELEASE, str(chart), "--kubeconfig", str(kubeconfig)]
    command += ["--namespace", _RELEASE, "--create-namespace", "--values", "-"]
    _run(command, yaml.safe_dump(values))


def _run(command: list[str], text: str | None) -> str:
    done = subprocess.run(command, check=False, input=text, capture_output=True, text=True)
    if done.returncode:
        raise DevclusterError(f"`{' '.join(command)}` failed:\n{(done.stderr or done.stdout).strip()}")
    return done.stdout
