"""Plays kubeflow's spark-operator and its pods, as measured on v2.5.2: real objects, no kubelet, no Spark."""

import threading
from datetime import UTC, datetime
from typing import Any

from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient

from tests.support.waiting import eventually

_WITHOUT_RUN = ("SUBMITTED", "PENDING_RERUN", "SUSPENDED", "RESUMING")
_APPLICATIONS = "/apis/sparkoperator.k8s.io/v1beta2/namespaces/{}/sparkapplications"


def application_body(name: str, **spec: Any) -> dict[str, Any]:
    """Return a SparkApplication that the API server takes."""
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": name},
        "spec": {
            "type": "Python",
            "mode": "cluster",
            "sparkVersion": "4.2.0",
            "image": "example/pipeline",
            "mainApplicationFile": "local:///app.py",
            "driver": {"cores": 1},
            "executor": {"instances": 2},
            **spec,
        },
    }


class ScriptedApplication:
    """One SparkApplication; each method does what kubeflow's operator, the kubelet or Spark would do next."""

    def __init__(self, client: KubeClient, namespace: str, name: str = "app") -> None:
        self._client = client
        self.namespace = namespace
        self.name = name
        self._path = f"{_APPLICATIONS.format(namespace)}/{name}"
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self.run_id = ""
        self.driver_uid = ""

    def create(self, **spec: Any) -> "ScriptedApplication":
        self._client.request("POST", _APPLICATIONS.format(self.namespace), body=application_body(self.name, **spec))
        return self

    def body(self) -> dict[str, Any]:
        return self._client.request("GET", self._path)

    @property
    def exists(self) -> bool:
        try:
            return bool(self.body())
        except ApiError as error:
            if error.status != 404:
                raise
            return False

    def set_state(self, state: str) -> None:
        run_id = None if state in _WITHOUT_RUN else self.run_id
        changes = {"status": {"applicationState": {"state": state}, "driverInfo": {}, "sparkApplicationId": run_id}}
        self._client.request("PATCH", f"{self._path}/status", body=changes, content_type=MERGE_PATCH)

    @property
    def suspended(self) -> bool:
        return bool(self.body()["spec"].get("suspend"))

    def submit(self, run_id: str) -> str:
        """Make a driver pod that no node has started yet; returns its uid."""
        self.run_id = run_id
        self.set_state("SUBMITTED")
        self.driver_uid = self.create_pod(f"{self.name}-driver", {"spark-role": "driver"})
        return self.driver_uid

    def resume(self) -> None:
        """Take `suspend` back, as whoever applies the next version does."""
        self._set_suspend(False)

    def change(self, **spec: Any) -> None:
        """Change its spec, as the next version does."""
        self._client.request("PATCH", self._path, body={"spec": spec}, content_type=MERGE_PATCH)

    def label(self, **labels: str) -> None:
        """Change its labels, as a tool does that applies it with the commit's."""
        self._client.request("PATCH", self._path, body={"metadata": {"labels": labels}}, content_type=MERGE_PATCH)

    def suspend(self) -> None:
        """Suspend it by hand."""
        self._set_suspend(True)
        self.obey_suspend()

    def set_finalizers(self, *names: str) -> None:
        self._client.request("PATCH", self._path, body={"metadata": {"finalizers": [*names]}}, content_type=MERGE_PATCH)

    def _set_suspend(self, wanted: bool) -> None:
        self._client.request("PATCH", self._path, body={"spec": {"suspend": wanted}}, content_type=MERGE_PATCH)

    def start(self, run_id: str = "spark-one", *, executors: int = 2) -> str:
        """Start a run; returns the driver pod's uid."""
        uid = self.submit(run_id)
        self.run_pod(f"{self.name}-driver")
        for number in range(1, executors + 1):
            self.add_executor(str(number))
        self.set_state("RUNNING")
        return uid

    def add_executor(self, executor_id: str, *, running: bool = True, owned: bool = True) -> None:
        name = f"{self.name}-{self.run_id}-exec-{executor_id}"
        self.create_pod(name, {"spark-role": "executor", "spark-exec-id": executor_id}, owned=owned)
        if running:
            self.run_pod(name)

    def create_pod(self, name: str, labels: dict[str, str], *, owned: bool = True) -> str:
        if labels["spark-role"] == "driver":
            uid = self.body()["metadata"]["uid"]
            owner = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": self.name, "uid": uid}
        else:
            owner = {"apiVersion": "v1", "kind": "Pod", "name": f"{self.name}-driver", "uid": self.driver_uid}
        body = self._client.request(
            "POST",
            self._pods,
            body={
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "labels": {"sparkoperator.k8s.io/app-name": self.name, "spark-app-selector": self.run_id} | labels,
                    "ownerReferences": [{**owner, "controller": True}] if owned else [],
                },
                "spec": {"containers": [{"name": "spark", "image": "example/pipeline"}], "automountServiceAccountToken": False},
            },
        )
        return str(body["metadata"]["uid"])

    def run_pod(self, name: str) -> None:
        started = {"running": {"startedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}}
        container = {"name": "spark", "image": "example/pipeline", "imageID": "", "ready": True, "restartCount": 0, "state": started}
        changes = {"status": {"phase": "Running", "containerStatuses": [container]}}
        self._client.request("PATCH", f"{self._pods}/{name}/status", body=changes, content_type=MERGE_PATCH)

    def bind_pods(self, node: str, *, role: str | None = None) -> None:
        """Have its pods that are on no node yet run on a node, as the scheduler does."""
        selector = f"sparkoperator.k8s.io/app-name={self.name}" + (f",spark-role={role}" if role else "")
        for pod in self._client.request("GET", self._pods, query={"labelSelector": selector})["items"]:
            name = pod["metadata"]["name"]
            if pod["spec"].get("nodeName"):
                continue
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
            self._client.request("POST", f"{self._pods}/{name}/binding", body=binding)

    @property
    def alive(self) -> set[str]:
        """Names of its pods that are not being deleted."""
        listed = self._client.request("GET", self._pods, query={"labelSelector": f"sparkoperator.k8s.io/app-name={self.name}"})["items"]
        return {pod["metadata"]["name"] for pod in listed if not pod["metadata"].get("deletionTimestamp")}

    def annotate(self, **annotations: str) -> None:
        """Set annotations of the operator's group."""
        found = {f"sparkdrain.io/{name}": value for name, value in annotations.items()}
        self._client.request("PATCH", self._path, body={"metadata": {"annotations": found}}, content_type=MERGE_PATCH)

    def end_pods(self, *, role: str | None = None) -> None:
        """Remove the pods, as deletion and the driver's shutdown hook do."""
        selector = f"sparkoperator.k8s.io/app-name={self.name}" + (f",spark-role={role}" if role else "")
        for pod in self._client.request("GET", self._pods, query={"labelSelector": selector})["items"]:
            self.end_pod(pod["metadata"]["name"])

    def start_beside(self, run_id: str, driver: str) -> None:
        """Start a run although the driver of the one before has not ended."""
        self.run_id = run_id
        self.driver_uid = self.create_pod(driver, {"spark-role": "driver"})
        self.run_pod(driver)
        self.set_state("RUNNING")

    def hold_pods(self, *, role: str = "driver", held: bool = True) -> None:
        """Let pods that are deleted take their time, until they are released."""
        selector = f"sparkoperator.k8s.io/app-name={self.name},spark-role={role}"
        finalizers = {"metadata": {"finalizers": ["example.com/held"] if held else None}}
        for pod in self._client.request("GET", self._pods, query={"labelSelector": selector})["items"]:
            self._client.request("PATCH", f"{self._pods}/{pod['metadata']['name']}", body=finalizers, content_type=MERGE_PATCH)

    def end_pod(self, name: str) -> None:
        """Remove one pod, unless it is gone."""
        try:
            self._client.request("DELETE", f"{self._pods}/{name}", query={"gracePeriodSeconds": "0"})
        except ApiError as error:
            if error.status != 404:
                raise

    def restart(self, run_id: str, *, executors: int = 2) -> str:
        """Lose the driver and start another run, as with restartPolicy Always; returns the new driver pod's uid."""
        self.set_state("FAILING")
        self.end_pods()
        self.set_state("PENDING_RERUN")
        return self.start(run_id, executors=executors)

    def await_suspend(self, *, seconds: float = 60.0) -> None:
        eventually(lambda: self.suspended, seconds=seconds, what="spec.suspend is set")

    def obey_suspend(self, *, seconds: float = 60.0) -> None:
        """Wait for spec.suspend, then do what the real operator does: say SUSPENDED first, end the pods afterwards."""
        self.await_suspend(seconds=seconds)
        self.set_state("SUSPENDED")
        self.end_pods()

    def delete(self) -> None:
        self._client.request("DELETE", self._path)


class BackgroundKubeflow:
    """Obeys spec.suspend of one application in a thread."""

    def __init__(self, application: ScriptedApplication, *, seconds: float = 60.0) -> None:
        self._thread = threading.Thread(target=application.obey_suspend, kwargs={"seconds": seconds}, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join(timeout=60)
