"""What only the ConfigMap store has to get right."""

import http.server
import json
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from spark_drain_store import ConflictError, StoreError, StoreUnavailableError
from spark_drain_store.channel import open_channel
from spark_drain_store.configmap import MANAGED_BY, ConfigMapStore
from spark_drain_store.kube_client import KubeClient

from tests.support.apiserver import ApiServer


def kubeconfig(folder: Path, server: str, **user: str) -> str:
    path = folder / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
                "clusters": [{"name": "test", "cluster": {"server": server}}],
                "users": [{"name": "test", "user": user or {"token": "secret"}}],
            }
        )
    )
    return str(path)


def test_an_unreachable_server_is_unavailable(tmp_path: Path) -> None:
    client = KubeClient.from_kubeconfig(kubeconfig(tmp_path, "http://127.0.0.1:1"))
    store = ConfigMapStore(client, "default", "app")
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        store.read()
    with pytest.raises(StoreUnavailableError):
        store.write({"a": "1"})
    with pytest.raises(StoreUnavailableError):
        store.watch("7", 1.0)


def test_missing_credentials_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    with pytest.raises(StoreUnavailableError, match="set KUBECONFIG"):
        open_channel("configmap:default/app")
    monkeypatch.setenv("KUBECONFIG", "")
    with pytest.raises(StoreUnavailableError, match="no Kubernetes credentials in KUBECONFIG, which is empty"):
        open_channel("configmap:default/app")


@pytest.fixture
def answering() -> Iterator[tuple[str, list[tuple[int, bytes]]]]:
    """Return the address of a server and the answers that it gives, in order; the last one stays."""
    answers: list[tuple[int, bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    server.shutdown()
    thread.join()
    server.server_close()


def answer_to_a_watch(status: int, body: bytes, found: list[tuple[int, bytes]]) -> None:
    """Let a server list the ConfigMap of version 7, and answer a watch of it so, again and again."""
    config_map = {"metadata": {"resourceVersion": "7", "name": "app"}, "data": {}}
    listed = json.dumps({"metadata": {"resourceVersion": "7"}, "items": [config_map]}).encode()
    found.extend([(status, body), (200, listed)] * 1000)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b'{"type": "ERROR", "object": {"code": 410}}\n'),
        (200, b'["an event of no API server"]\n'),
        (200, b"[" * 200_000 + b"\n"),
        (410, b'{"kind": "Status", "reason": "Expired", "message": "old"}'),
    ],
    ids=["empty", "error", "list", "nested", "gone"],
)
def test_a_watch_that_ends_at_once_is_not_asked_for_without_a_pause(
    tmp_path: Path, answering: tuple[str, list[tuple[int, bytes]]], status: int, body: bytes
) -> None:
    address, answers = answering
    answer_to_a_watch(status, body, answers)
    store = ConfigMapStore(KubeClient.from_kubeconfig(kubeconfig(tmp_path, address)), "default", "app")
    assert store.watch("7", 3.0) is None
    assert 2000 - len(answers) <= 8


@pytest.mark.parametrize("answer", [b"", b"[1, 2]", b"[" * 200_000 + b"]" * 200_000], ids=["empty", "list", "nested"])
def test_what_is_no_object_is_none_of_its_answers(tmp_path: Path, answering: tuple[str, list[tuple[int, bytes]]], answer: bytes) -> None:
    address, answers = answering
    answers.append((200, answer))
    store = ConfigMapStore(KubeClient.from_kubeconfig(kubeconfig(tmp_path, address)), "default", "app")
    with pytest.raises(StoreUnavailableError, match="not one of the Kubernetes API"):
        store.read()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_unavailable(tmp_path: Path, answering: tuple[str, list[tuple[int, bytes]]], status: int) -> None:
    address, answers = answering
    answers.append((status, b"come back later"))
    store = ConfigMapStore(KubeClient.from_kubeconfig(kubeconfig(tmp_path, address)), "default", "app")
    with pytest.raises(StoreUnavailableError, match=str(status)):
        store.read()


VERSION: dict[str, object] = {"resourceVersion": "7"}


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "ok"},
        {"metadata": None},
        {"metadata": {"name": "app"}},
        {"items": [{}]},
        {
            "metadata": VERSION | {"ownerReferences": [{"name": "x"}]},
            "items": [{"metadata": VERSION | {"ownerReferences": [{"name": "x"}]}}],
        },
        {"metadata": VERSION | {"ownerReferences": 1}, "items": 1},
        {"metadata": VERSION, "data": ["x"], "items": {"x": 1}},
        {"metadata": VERSION, "data": {"x": 1}, "items": [1]},
    ],
)
def test_what_answers_in_place_of_the_api_server_is_none_of_its_answers(
    tmp_path: Path, answering: tuple[str, list[tuple[int, bytes]]], answer: dict[str, object]
) -> None:
    """As a proxy may, while the API server is away."""
    address, answers = answering
    answers.append((200, json.dumps(answer).encode()))
    store = ConfigMapStore(KubeClient.from_kubeconfig(kubeconfig(tmp_path, address)), "default", "app")
    with pytest.raises(StoreUnavailableError, match="not one of the Kubernetes API"):
        store.read()
    with pytest.raises(StoreUnavailableError, match="not one of the Kubernetes API"):
        store.watch("", 3.0)


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "it does not know these credentials"), (403, "grant the service account get, list, watch")]
)
def test_a_refusal_names_the_way_out(tmp_path: Path, answering: tuple[str, list[tuple[int, bytes]]], status: int, hint: str) -> None:
    address, answers = answering
    answers.append((status, b'{"kind": "Status", "reason": "Forbidden", "message": "no"}'))
    store = ConfigMapStore(KubeClient.from_kubeconfig(kubeconfig(tmp_path, address)), "default", "app")
    with pytest.raises(StoreError, match=hint) as caught:
        store.read()
    assert not isinstance(caught.value, StoreUnavailableError)


@pytest.fixture
def named(api_server: ApiServer) -> Iterator[str]:
    name = f"store-{uuid.uuid4().hex[:8]}"
    yield name
    api_server.client.request("DELETE", "/api/v1/namespaces/default/configmaps", query={"fieldSelector": f"metadata.name={name}"})


@pytest.mark.apiserver
def test_a_created_store_carries_the_label_that_is_watched(api_server: ApiServer, named: str) -> None:
    ConfigMapStore(api_server.client, "default", named).write({"a": "1"})
    body = api_server.client.request("GET", f"/api/v1/namespaces/default/configmaps/{named}")
    assert body["metadata"]["labels"].items() >= MANAGED_BY.items()


@pytest.mark.apiserver
def test_what_went_with_its_owner_is_made_again_for_that_owner_only(api_server: ApiServer, named: str) -> None:
    """An agent that outlives its application leaves nothing behind for the next one of that name."""
    config_maps = "/api/v1/namespaces/default/configmaps"
    made = api_server.client.request("POST", config_maps, body={"metadata": {"name": f"{named}-owner"}})  # else it would be collected
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": f"{named}-owner", "uid": made["metadata"]["uid"]}
    body = {"metadata": {"name": named, "ownerReferences": [owner | {"blockOwnerDeletion": False}]}}
    api_server.client.request("POST", config_maps, body=body)
    store = ConfigMapStore(api_server.client, "default", named)
    store.write({"a": "1"})
    api_server.client.request("DELETE", f"{config_maps}/{named}")
    store.write({"a": "2"})
    assert api_server.client.request("GET", f"{config_maps}/{named}")["metadata"]["ownerReferences"] == [owner]
    api_server.client.request("DELETE", f"{config_maps}/{named}-owner")


@pytest.mark.apiserver
def test_deletion_wakes_up_a_watch_and_reads_as_absent(api_server: ApiServer, named: str) -> None:
    store = ConfigMapStore(api_server.client, "default", named)
    version = store.write({"a": "1"})
    path = f"/api/v1/namespaces/default/configmaps/{named}"
    timer = threading.Timer(0.3, lambda: api_server.client.request("DELETE", path))
    timer.start()
    snapshot = store.watch(version, 20.0)
    timer.join()
    assert snapshot is not None
    assert (snapshot.version, dict(snapshot.entries)) == ("", {})
    with pytest.raises(ConflictError):
        store.write({"a": "2"}, if_version=version)


@pytest.mark.apiserver
def test_removing_from_an_absent_store_does_not_create_it(api_server: ApiServer, named: str) -> None:
    store = ConfigMapStore(api_server.client, "default", named)
    store.write({"a": None})
    assert store.read().version == ""


@pytest.mark.apiserver
def test_a_watch_survives_a_version_that_is_too_old(api_server: ApiServer, named: str) -> None:
    store = ConfigMapStore(api_server.client, "default", named)
    store.write({"a": "1"})
    snapshot = store.watch("1", 5.0)
    assert snapshot is not None
    assert dict(snapshot.entries) == {"a": "1"}


@pytest.mark.apiserver
def test_without_the_right_to_watch_it_polls(api_server: ApiServer, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_drain_store.configmap._POLL_SECONDS", 0.5)
    api_server.run_kubectl("create", "serviceaccount", named)
    api_server.run_kubectl("create", "role", named, "--verb=get,create,patch", "--resource=configmaps")
    api_server.run_kubectl("create", "rolebinding", named, f"--role={named}", f"--serviceaccount=default:{named}")
    token = api_server.run_kubectl("create", "token", named).strip()
    admin = yaml.safe_load(api_server.kubeconfig.read_text())
    for user in admin["users"]:
        user["user"] = {"token": token}
    path = tmp_path / "limited"
    path.write_text(yaml.safe_dump(admin))
    client = KubeClient.from_kubeconfig(str(path))
    store = ConfigMapStore(client, "default", named)
    version = store.write({"a": "1"})
    timer = threading.Timer(0.8, lambda: ConfigMapStore(api_server.client, "default", named).write({"a": "2"}))
    timer.start()
    began = time.monotonic()
    snapshot = store.watch(version, 20.0)
    timer.join()
    client.close()
    assert snapshot is not None
    assert dict(snapshot.entries) == {"a": "2"}
    assert time.monotonic() - began < 10.0
