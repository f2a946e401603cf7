"""Names that are no names, and answers without an end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
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


@pytest.fixture
def endless() -> Iterator[str]:
    """Answer each request with a line every 10 ms, for as long as anybody reads."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                try:
                    while not over.wait(0.01):
                        connection.sendall(b"2\r\n{}\r\n")
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
    from kubernetes import client

    configuration = client.Configuration()
    configuration.host = endless
    with pytest.raises(error, match=why):
        KubeClient(configuration).request("GET", objects_path("v1", "ns", "pods"))


DATED: list[tuple[int, bytes, bool]] = [
    (200, b'{"apiVersion": "v1", "kind": "PodList"}', True),
    (200, b'{"status": "ok"}', False),
    (404, b"404 page not found", False),
    (503, b'{"message": "no healthy upstream"}', False),
]


@pytest.mark.parametrize(("status", "text", "dated"), DATED)
def test_only_the_api_server_tells_the_time(status: int, text: bytes, dated: bool) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    from kubernetes import client

    configuration, told = client.Configuration(), []
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        configuration.host = f"http://127.0.0.1:{server.server_port}"
        api = KubeClient(configuration)
        api.dated = lambda *answer: told.append(answer)
        with suppress(ApiError, ApiUnavailableError):
            api.request("GET", objects_path("v1", "ns", "pods"))
        api.close()
        thread.join()
    assert len(told) == dated
    assert all(date.endswith("GMT") and asked <= answered for date, asked, answered in told)
