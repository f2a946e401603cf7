"""A real API server for tests: of SPARK_DRAIN_TEST_KUBECONFIG, or started on loopback for the session."""

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from spark_drain_store.kube_client import JSON_PATCH, ApiError, ApiUnavailableError, KubeClient

from devcluster import gobuild
from devcluster.api import control_plane
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
OWN_DEFINITIONS = (ROOT / "crds/executorplacement.yaml", ROOT / "crds/pipelinedrain.yaml")
KUBECONFIG = "SPARK_DRAIN_TEST_KUBECONFIG"
DRAINS = "/apis/sparkdrain.io/v1alpha1/namespaces/{}/pipelinedrains"
PLACEMENTS = "/apis/sparkdrain.io/v1alpha1/namespaces/{}/executorplacements"


@dataclass(frozen=True)
class ApiServer:
    kubeconfig: Path
    client: KubeClient
    kubectl: str
    cache: Path

    def environment(self) -> dict[str, str]:
        # kubectl remembers for hours what an earlier server on the same port could do.
        return os.environ | {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.cache)}

    def run_kubectl(self, *arguments: str, text: str | None = None) -> str:
        done = subprocess.run([self.kubectl, *arguments], input=text, capture_output=True, text=True, env=self.environment(), check=False)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def apply(self, path: Path) -> None:
        self.run_kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))

    def established(self, name: str) -> bool:
        body = self.client.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        conditions = (body.get("status") or {}).get("conditions") or []
        return any(item["type"] == "Established" and item["status"] == "True" for item in conditions)


def spark_application_definition() -> Path:
    """Return kubeflow's own CustomResourceDefinition of SparkApplication, from its Go module."""
    module = gobuild.module_dir(gobuild.SPARK_OPERATOR, "github.com/kubeflow/spark-operator/v2")
    return module / "config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml"


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running(tmp_path_factory.mktemp("kubectl")) as server:
        yield server


@contextmanager
def running(cache: Path) -> Iterator[ApiServer]:
    """Run an API server, or take the given one, that knows the operator's kinds; ``cache`` is kubectl's folder."""
    with ExitStack() as stack:
        given = os.environ.get(KUBECONFIG)
        if given:
            kubectl = shutil.which("kubectl")
            assert kubectl, f"{KUBECONFIG} is set: kubectl must be on the PATH"
            kubeconfig = Path(given)
        else:
            plane = stack.enter_context(control_plane())
            kubeconfig, kubectl = plane.kubeconfig, str(plane.kubectl)
        yield stack.enter_context(served(kubeconfig, kubectl, cache))


@contextmanager
def served(kubeconfig: Path, kubectl: str, cache: Path) -> Iterator[ApiServer]:
    """Teach an API server what the operator's own kinds and a SparkApplication are."""
    client = KubeClient.from_kubeconfig(str(kubeconfig))
    server = ApiServer(kubeconfig, client, kubectl, cache)
    for path in (*OWN_DEFINITIONS, spark_application_definition()):
        server.apply(path)
        name = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)["metadata"]["name"]
        eventually(partial(server.established, name), what=f"{name} is established")
    yield server
    client.close()


def listed(client: KubeClient, path: str) -> dict[str, Any] | None:
    """Return a list, None while the API server has just begun: it refuses for a second or so."""
    try:
        return client.request("GET", path)
    except ApiUnavailableError:
        return None


@contextmanager
def new_namespaces(api_server: ApiServer, count: int) -> Iterator[list[str]]:
    """Make namespaces, and remove them even where an operator that could answer their finalizers is gone."""
    client = api_server.client
    names = [f"test-{uuid.uuid4().hex[:8]}" for _ in range(count)]
    for name in names:
        client.request("POST", "/api/v1/namespaces", body={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def account(name: str) -> bool:
        try:
            return bool(client.request("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default"))
        except ApiError:
            return False

    for name in names:
        eventually(partial(account, name), what="the namespace has its service account")
    yield names
    for collection in (DRAINS, PLACEMENTS):
        everywhere = collection.replace("namespaces/{}/", "")
        for item in eventually(partial(listed, client, everywhere), what="the API server answers")["items"]:
            metadata = item["metadata"]
            if metadata["namespace"] in names and metadata.get("finalizers"):
                patch = [{"op": "remove", "path": "/metadata/finalizers"}]
                path = f"{collection.format(metadata['namespace'])}/{metadata['name']}"
                client.request("PATCH", path, body=patch, content_type=JSON_PATCH)
    for name in names:
        client.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def namespace(api_server: ApiServer) -> Iterator[str]:
    with new_namespaces(api_server, 1) as (name,):
        yield name


@contextmanager
def _new_node(api_server: ApiServer) -> Iterator[str]:
    name = f"node-{uuid.uuid4().hex[:8]}"
    api_server.client.request("POST", "/api/v1/nodes", body={"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    yield name
    with suppress(ApiError):
        api_server.client.request("DELETE", f"/api/v1/nodes/{name}")


@pytest.fixture
def node(api_server: ApiServer) -> Iterator[str]:
    with _new_node(api_server) as name:
        yield name


@pytest.fixture
def other_node(api_server: ApiServer) -> Iterator[str]:
    with _new_node(api_server) as name:
        yield name


def drain_body(name: str = "drain", **spec: Any) -> dict[str, Any]:
    """Return a PipelineDrain of the application ``app``."""
    return _body("PipelineDrain", name, spec)


def placement_body(name: str = "placement", **spec: Any) -> dict[str, Any]:
    """Return an ExecutorPlacement of an executor of the application ``app``."""
    return _body("ExecutorPlacement", name, {"destination": {"type": "AnyOther"}, **spec})


def _body(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    reference = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "app"}
    return {
        "apiVersion": "sparkdrain.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"applicationRef": reference, **spec},
    }


def service_account(server: ApiServer, namespace: str, name: str, folder: Path) -> Path:
    """Return a kubeconfig of a service account."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    token = server.run_kubectl("create", "token", name, "-n", namespace).strip()
    for user in config["users"]:
        user["user"] = {"token": token}
    path = folder / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path
