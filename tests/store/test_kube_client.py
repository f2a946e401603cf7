"""Names that are no names, and answers without an end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.config import incluster_config
from spark_drain_store import kube_client
from spark_drain_store.kube_client import AnswerTooLargeError, ApiError, ApiUnavailableError, KubeClient, objects_path


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        (("v1", "ns", "pods"), "/api/v1/namespaces/ns/pods"),
        (
            ("sparkdrain.io/v1alpha1", "ns", "pipelinedrains", "d", "status"),
            "/apis/sparkdrain.io/v1alpha1/namespaces/ns/pipelinedrains/d/status",
        ),
        (("v1", "ns", "configmaps", "a/../../x"), "/api/v1/namespaces/ns/configmaps/a%2F..%2F..%2Fx"),
        (("v1", "ns", "configmaps", "a?watch=true&x=#"), "/api/v1/namespaces/ns/configmaps/a%3Fwatch%3Dtrue%26x%3D%23"),
        (("v1", "ns", "configmaps", "a%2Fb"), "/api/v1/namespaces/ns/configmaps/a%252Fb"),
    ],
)
def test_no_name_leads_elsewhere(parts: tuple[str, str, str], path: str) -> None:
    assert objects_path(*parts) == path


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_of_dots_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no object of the Kubernetes API has the name"):
        objects_path("v1", "ns", "configmaps", name)


@pytest.fixture(params=[("Transfer-Encoding: chunked", b"2\r\n{}\r\n"), ("Content-Length: 1000000", b"{}")], ids=["chunked", "long"])
def endless(request: pytest.FixtureRequest) -> Iterator[str]:
    """Answer each request with two characters every 10 ms, for as long as anybody reads."""
    header, part = request.param
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(f"HTTP/1.1 200 OK\r\n{header}\r\n\r\n".encode())
                try:
                    while not over.wait(0.01):
                        connection.sendall(part)
                except OSError:
                    pass

        thread = threading.Thread(target=answer)
        thread.start()
        host, port = server.getsockname()
        yield f"http://{host}:{port}"
        over.set()
        thread.join()


@pytest.mark.parametrize(
    ("limit", "error", "why"),
    [("_ANSWER_SECONDS", ApiUnavailableError, "answer takes more than 1 s"), ("_ANSWER_BYTES", AnswerTooLargeError, "longer than 1 bytes")],
)
def test_an_answer_without_an_end_is_given_up(
    endless: str, limit: str, error: type[Exception], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_client, limit, 1)
    configuration = client.Configuration()
    configuration.host = endless
    with pytest.raises(error, match=why):
        KubeClient(configuration).request("GET", objects_path("v1", "ns", "pods"))


@contextmanager
def serving(status: int, text: bytes, length: int, before: Callable[[], object] = bool) -> Iterator[client.Configuration]:
    """Answer each request with a text that is said to be of a length, and close the connection where it is not."""

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            before()
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(text)
            self.close_connection = length != len(text)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 40

    configuration = client.Configuration()
    with Server(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        configuration.host = f"http://127.0.0.1:{server.server_port}"
        try:
            yield configuration
        finally:
            server.shutdown()
            thread.join()


DATED: list[tuple[int, bytes, bool]] = [
    (200, b'{"apiVersion": "v1", "kind": "PodList"}', True),
    (200, b'{"status": "ok"}', False),
    (404, b"404 page not found", False),
    (503, b'{"message": "no healthy upstream"}', False),
]


@pytest.mark.parametrize(("status", "text", "dated"), DATED)
def test_only_the_api_server_tells_the_time(status: int, text: bytes, dated: bool) -> None:
    told: list[tuple[str, float, float]] = []
    with serving(status, text, len(text)) as configuration:
        api = KubeClient(configuration)
        api.dated = lambda *answer: told.append(answer)
        with suppress(ApiError, ApiUnavailableError):
            api.request("GET", objects_path("v1", "ns", "pods"))
        api.close()
    assert len(told) == dated
    assert all(date.endswith("GMT") and asked <= answered for date, asked, answered in told)


@pytest.mark.parametrize(
    "rotated",
    [b"", None, b"secret\nof two lines", b"secret\xff", "secret\u2603".encode()],
    ids=["empty", "missing", "half", "no text", "no header"],
)
def test_a_token_that_is_just_written_anew_is_asked_for_again(rotated: bytes | None, tmp_path: Path) -> None:
    token, certificate = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("secret")
    certificate.write_text("x")
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    untyped: Any = incluster_config
    loader = untyped.InClusterConfigLoader(str(token), str(certificate), environ=environment)
    configuration = client.Configuration()
    loader.load_and_set(configuration)
    configuration.ssl_ca_cert = None
    api = KubeClient(configuration)
    loader.token_expires_at = datetime.min
    if rotated is None:
        token.unlink()
    else:
        token.write_bytes(rotated)
    with pytest.raises(ApiUnavailableError, match="credentials for the Kubernetes API server cannot be read") as caught:
        api.request("GET", objects_path("v1", "ns", "pods"))
    assert "secret" not in str(caught.value)


def test_an_address_without_a_password_is_told_as_it_is() -> None:
    configuration = client.Configuration()
    configuration.host = "http://127.0.0.1:1/a//b@c"
    with pytest.raises(ApiUnavailableError, match=r"the Kubernetes API server at http://127\.0\.0\.1:1/a//b@c cannot"):
        KubeClient(configuration).request("GET", objects_path("v1", "ns", "pods"))


@pytest.mark.parametrize("scheme", ["http", "htp"])
def test_a_password_in_the_address_of_the_api_server_is_not_told(scheme: str) -> None:
    configuration = client.Configuration()
    configuration.host = f"{scheme}://me:secret@127.0.0.1:1"
    with pytest.raises(ApiUnavailableError, match=r"127\.0\.0\.1:1") as caught:
        KubeClient(configuration).request("GET", objects_path("v1", "ns", "pods"))
    assert "secret" not in str(caught.value)


def test_forty_requests_at_the_same_time_are_no_reason_for_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """As of the watches of an operator with many namespaces."""
    together, text = threading.Barrier(40, timeout=30), b'{"kind": "A"}'
    with serving(200, text, len(text), before=together.wait) as configuration:
        api = KubeClient(configuration)
        with ThreadPoolExecutor(40) as pool:
            assert list(pool.map(lambda _: api.request("GET", objects_path("v1", "ns", "pods")), range(40))) == [{"kind": "A"}] * 40
        api.close()
    assert caplog.messages == []


def test_a_refused_watch_whose_answer_breaks_off_is_asked_for_again() -> None:
    with (
        serving(503, b'{"message": "shut', 1000) as configuration,
        pytest.raises(ApiUnavailableError, match="broke off its answer"),
    ):
        KubeClient(configuration).watch(objects_path("v1", "ns", "configmaps"), {}, 5)


@pytest.mark.parametrize("text", ["{[", "[1]", "7", "\0", "users: 7"])
def test_what_is_no_kubeconfig_is_told_without_what_it_says(text: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ApiUnavailableError, match=r"no Kubernetes credentials in .*/kubeconfig \(.*\): run in a pod, or set KUBECONFIG"):
        KubeClient.from_kubeconfig(str(path))
