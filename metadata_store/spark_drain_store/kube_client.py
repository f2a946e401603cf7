"""Plain JSON requests to the Kubernetes API, with the credentials of the kubernetes package.

Its typed models differ between the supported major versions and cost tens of megabytes in a driver; paths and JSON do neither. Only
configuration, TLS and tokens are taken from the package.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

__all__ = [
    "FIELD_MANAGER",
    "JSON_PATCH",
    "MERGE_PATCH",
    "AnswerTooLargeError",
    "ApiError",
    "ApiUnavailableError",
    "KubeClient",
    "WatchStream",
    "cluster_path",
    "collection_path",
    "objects_path",
]

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

FIELD_MANAGER = "spark-drain"
"""User agent of each request, after which the API server names the manager of the fields that it has written."""

_CONNECTIONS = 256  # more at the same time are closed with a warning; an operator has two watches for each of its namespaces
_CONNECT_SECONDS = 5.0
_READ_SECONDS = 30.0
_ANSWER_SECONDS = 60.0
_ANSWER_BYTES = 64 * 2**20
_CHUNK_BYTES = 2**16

_PASSWORD = re.compile(r"(?<=:)//[^/\s]*@")  # and the user, in an address

_log = logging.getLogger(__name__)


def objects_path(api_version: str, namespace: str, plural: str, *rest: str) -> str:
    """Return the path of objects: of a collection, of one with its name, or of a subresource; no name can lead elsewhere.

    Raises
    ------
    ValueError
        A part is empty or consists of dots, as no name of an object does.
    """
    return _path(api_version, "namespaces", namespace, plural, *rest)


def cluster_path(api_version: str, plural: str, *rest: str) -> str:
    """Return the path of the objects of all namespaces, or of one that has none; raises as `objects_path` does."""
    return _path(api_version, plural, *rest)


def collection_path(api_version: str, namespace: str, plural: str) -> str:
    """Return the path of the objects of a namespace, with "" of all; raises as `objects_path` does."""
    return objects_path(api_version, namespace, plural) if namespace else cluster_path(api_version, plural)


def _path(api_version: str, *parts: str) -> str:
    for part in parts:
        if not part.strip("."):
            raise ValueError(f"no object of the Kubernetes API has the name {part!r}")
    prefix = "apis" if "/" in api_version else "api"
    return f"/{prefix}/{api_version}/" + "/".join(quote(part, safe="") for part in parts)


class ApiUnavailableError(Exception):
    """The API server did not answer, or asked to come back later; the same request may succeed then.

    Parameters
    ----------
    message
        What happened.
    status
        HTTP status code; 0 where there was no answer. With 500 the server is there, and what it asks, such as a webhook, is not.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status

    @property
    def answered(self) -> bool:
        """Whether the server is there all the same."""
        return self.status == 500


class AnswerTooLargeError(ApiUnavailableError):
    """The API server's answer was longer than any that is read: it is there, and asking once more does not help."""

    answered = True


class ApiError(Exception):
    """The API server refused a request.

    Parameters
    ----------
    status
        HTTP status code.
    reason
        The ``reason`` of the Status object, such as ``NotFound``; "" where there is none.
    message
        The server's words.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def absent(self) -> bool:
        """Whether the API server says that there is no such object: a 404 of a proxy, or for a kind that is not served, says nothing."""
        return self.status == 404 and self.reason == "NotFound"


class WatchStream:
    """The events of one watch request; `close` from another thread ends the iteration."""

    def __init__(self, response: Any) -> None:
        self._response = response

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Yield events until the server, the read timeout or `close` ends the stream."""
        from urllib3.exceptions import HTTPError

        buffer = b""
        try:
            for chunk in self._response.stream(amt=None, decode_content=True):
                buffer += chunk
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    if line.strip():
                        event = json.loads(line)
                        if not isinstance(event, dict):
                            return  # none of the API server's
                        yield event
        except (HTTPError, OSError, ValueError, RecursionError, AttributeError):
            # An ended stream means "read again"; AttributeError is how a response closed by another thread shows.
            return

    def close(self) -> None:
        """End the stream."""
        shutdown = getattr(self._response, "shutdown", None)  # urllib3 2.3: closing alone would wait for the reader
        try:
            if shutdown is not None:
                shutdown()
        except (OSError, ValueError, RuntimeError):
            pass
        self._response.close()


class KubeClient:
    """One API server, safe to share between threads.

    Parameters
    ----------
    configuration
        A ``kubernetes.client.Configuration``.
    """

    def __init__(self, configuration: Any) -> None:
        from kubernetes.client import ApiClient

        configuration.connection_pool_maxsize = _CONNECTIONS
        self._configuration = configuration
        self._api_client = ApiClient(configuration)
        self._pool = self._api_client.rest_client.pool_manager
        self._token_lock = threading.RLock()  # a signal handler may ask in the middle of a request of its own thread
        self.dated: Callable[[str, float, float], None] | None = None
        """Told the ``Date`` of each answer of the API server, and the monotonic seconds when it was asked for and when it was there."""

    @classmethod
    def from_environment(cls) -> KubeClient:
        """Connect as the pod's service account, or else as ``KUBECONFIG`` (``~/.kube/config``) says.

        Raises
        ------
        ApiUnavailableError
            There is neither.
        """
        in_pod = "KUBECONFIG" not in os.environ and "KUBERNETES_SERVICE_HOST" in os.environ
        return cls._connect(in_pod=in_pod, kubeconfig=None)

    @classmethod
    def from_kubeconfig(cls, path: str) -> KubeClient:
        """Connect as a kubeconfig file says; raises as `from_environment` does."""
        return cls._connect(in_pod=False, kubeconfig=path)

    @classmethod
    def _connect(cls, *, in_pod: bool, kubeconfig: str | None) -> KubeClient:
        from kubernetes import client
        from kubernetes import config as untyped_config

        config: Any = untyped_config
        configuration = client.Configuration()
        try:
            if in_pod:
                config.load_incluster_config(client_configuration=configuration)
            else:
                config.load_kube_config(config_file=kubeconfig, client_configuration=configuration, persist_config=False)
        except Exception as error:  # a file of another kind fails in any way, and may say what nobody is to read
            named = kubeconfig or os.environ.get("KUBECONFIG", "~/.kube/config") or "KUBECONFIG, which is empty"
            where = "the service account" if in_pod else named
            why = error if isinstance(error, config.ConfigException) else type(error).__name__
            raise ApiUnavailableError(f"no Kubernetes credentials in {where} ({why}): run in a pod, or set KUBECONFIG") from error
        return cls(configuration)

    def _headers(self, accept: str, content_type: str | None) -> dict[str, str]:
        from kubernetes.config import ConfigException

        headers = {"Accept": accept, "User-Agent": FIELD_MANAGER}
        if content_type:
            headers["Content-Type"] = content_type
        with self._token_lock:  # the hook behind auth_settings re-reads a rotated token and is not thread-safe
            try:
                settings = self._configuration.auth_settings()
            except (ConfigException, OSError) as error:  # while it is written anew
                raise ApiUnavailableError(f"the credentials for the Kubernetes API server cannot be read: {error}") from error
            except ValueError:  # which says what it is
                raise ApiUnavailableError("the credentials for the Kubernetes API server cannot be read: they are no text") from None
        for setting in settings.values():
            if setting["in"] == "header" and setting["value"]:
                headers[setting["key"]] = value = setting["value"].strip()
                if not value.isprintable() or any(character > "\xff" for character in value):  # http.client would tell it
                    raise ApiUnavailableError(
                        "the credentials for the Kubernetes API server cannot be read: they are not one line of Latin-1 characters"
                    )
        return headers

    def _open(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], read_seconds: float) -> Any:
        import urllib3

        _log.debug("%s %s", method, _PASSWORD.sub("//", url))
        try:
            return self._pool.request(
                method,
                url,
                body=body,
                headers=dict(headers),
                timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=read_seconds),
                retries=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            message = f"the Kubernetes API server at {self._configuration.host} cannot be reached: {error}"
            raise ApiUnavailableError(_PASSWORD.sub("//", message)) from error

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        return f"{self._configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> dict[str, Any]:
        """Send one request and return the JSON object of the answer.

        Raises
        ------
        ApiError
            The server refused.
        ApiUnavailableError
            No answer, one that is no JSON object, as that of a proxy, or 429 or 5xx.
        """
        data = None if body is None else json.dumps(body).encode()
        headers, asked = self._headers(accept, None if data is None else content_type), time.monotonic()
        response = self._open(method, self._url(path, query), data, headers, _READ_SECONDS)
        answered = time.monotonic()
        content = _answer(response.status, _whole(response))
        if self.dated is not None and "apiVersion" in content:  # a proxy's answer is dated by another clock
            self.dated(response.headers.get("Date", ""), asked, answered)
        return content

    def watch(self, path: str, query: Mapping[str, str], timeout_seconds: float, *, quiet_seconds: float = math.inf) -> WatchStream:
        """Open a watch of at most that many seconds (rounded up); raises as `request` does.

        It ends as well when nothing comes for ``quiet_seconds``: with bookmarks there is something every minute.
        """
        seconds = max(1, int(timeout_seconds + 0.999))
        url = self._url(path, {**query, "watch": "true", "timeoutSeconds": str(seconds)})
        response = self._open("GET", url, None, self._headers("application/json", None), min(seconds + 5.0, quiet_seconds))
        if response.status != 200:
            _answer(response.status, _whole(response))
        return WatchStream(response)

    def close(self) -> None:
        """Close idle connections."""
        self._pool.clear()


def _whole(response: Any) -> bytearray:
    """Return what a response says, and give its connection back; one that does not come to its end in time, or at all, is closed."""
    from urllib3.exceptions import HTTPError

    give_up = time.monotonic() + _ANSWER_SECONDS
    text = bytearray()
    try:
        for chunk in _chunks(response):
            text += chunk
            if len(text) > _ANSWER_BYTES:
                response.close()
                raise AnswerTooLargeError(f"the Kubernetes API server's answer is longer than {_ANSWER_BYTES} bytes")
            if time.monotonic() > give_up:
                response.close()
                raise ApiUnavailableError(f"the Kubernetes API server's answer takes more than {_ANSWER_SECONDS:g} s")
    except (HTTPError, OSError) as error:
        raise ApiUnavailableError(f"the Kubernetes API server broke off its answer: {error}") from error
    finally:
        response.release_conn()
    return text


def _chunks(response: Any) -> Iterator[bytes]:
    """Yield what a response says as it comes: `stream` waits until a chunk is full, which urllib3 before 2.1 cannot do without."""
    if not hasattr(response, "read1"):
        yield from response.stream(_CHUNK_BYTES, decode_content=True)
        return
    while chunk := response.read1(_CHUNK_BYTES, decode_content=True):
        yield chunk


def _answer(status: int, text: bytes | bytearray) -> dict[str, Any]:
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        loaded = {}
    content = loaded if isinstance(loaded, dict) else {}
    if status < 300 and not content:  # an empty list would say that there are no pods
        raise ApiUnavailableError(f"the answer {status} is not one of the Kubernetes API: {text[:200].decode(errors='replace')}", status)
    if status < 300:
        return content
    message = str(content.get("message") or text[:200].decode(errors="replace"))
    if status == 429 or status >= 500:
        raise ApiUnavailableError(f"the Kubernetes API server answered {status}: {message}", status)
    raise ApiError(status, str(content.get("reason") or ""), message)
