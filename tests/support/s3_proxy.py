"""A proxy in front of an S3 server: it notes each request, makes kinds of them slow, and refuses, cuts or kills at a chosen one."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.s3_signing import signed, unchunked

__all__ = ["CHANGES", "READS", "Fault", "Request", "S3Proxy", "s3_proxy"]

CHANGES, READS = "PUT|COPY|DELETE|BULKDELETE", "GET|HEAD|LIST"
"""Kinds of requests, as `Fault` takes them."""

_CONDITIONS = frozenset({"if-match", "if-none-match"})
_HOP_BY_HOP = frozenset({"connection", "expect", "keep-alive", "transfer-encoding"})


@dataclass(frozen=True)
class Request:
    """One request: its kind, as ``PUT`` or ``COPY``, and the key, or the prefix of a listing."""

    kind: str
    key: str


class Answer(NamedTuple):
    """What a server answers."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    text: bytes


@dataclass
class Fault:
    """What happens from the n-th request on that matches.

    Parameters
    ----------
    kind, key
        Regular expressions that the whole kind, and some part of the key, match.
    after
        The same of the key of an object that is written before: nothing counts until then.
    nth
        The first one, counted from 1.
    times
        How many, None for all that follow.
    again, every
        How often it happens again, each time after so many requests.
    status
        HTTP status that refuses the request; 0 cuts the connection.
    carried_out
        Whether the server has carried out the request before.
    hold
        Seconds that pass before the client is told.
    act
        Called before the client is told, as to kill it.
    passes
        Whether the server carries the request out after `act`, and nothing is wrong with it.
    """

    kind: str = ".*"
    key: str = ""
    after: str = ""
    nth: int = 1
    times: int | None = None
    again: int = 0
    every: int = 1
    status: int = 0
    carried_out: bool = False
    hold: float = 0.0
    act: Callable[[], None] | None = None
    passes: bool = False
    seen: int = field(default=0, init=False)

    @property
    def happened(self) -> bool:
        """Whether a request was one of those that go wrong."""
        return self.seen >= self.nth

    def concerns(self, request: Request) -> bool:
        """Count a request that matches, and say whether it is one of those."""
        if self.after and request.kind == "PUT" and re.search(self.after, request.key):
            self.after = ""
        if self.after:
            return False
        if not (re.fullmatch(self.kind, request.kind) and re.search(self.key, request.key)):
            return False
        self.seen += 1
        beyond = self.seen - self.nth
        if self.again and beyond >= 0:
            beyond -= min(beyond // self.every, self.again) * self.every
        return beyond >= 0 and (self.times is None or beyond < self.times)


class S3Proxy:
    """What tests tell the proxy, and what it tells them.

    Attributes
    ----------
    requests
        All of them, in order.
    latency
        Seconds that a request of a kind takes beside its own time.
    fault
        What goes wrong, if anything.
    conditions
        What becomes of headers that make a PUT conditional: "" is what the server does; else they are ``ignored``, or that one which is
        named is, or they are ``refused``.
    around_change
        Entered before a request that changes the bucket is carried out, and left before the client is told.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.latency: Mapping[str, float] = {}
        self.fault: Fault | None = None
        self.conditions = ""
        self.around_change: Callable[[Request], AbstractContextManager[None]] = lambda _: nullcontext()
        self.port = 0
        self._lock = threading.Lock()

    def noted(self, request: Request) -> Fault | None:
        """Note a request, and return what goes wrong with it."""
        with self._lock:
            self.requests.append(request)
            return self.fault if self.fault is not None and self.fault.concerns(request) else None


def kind_of(method: str, target: str, headers: Mapping[str, str]) -> Request:
    """Return what a request is for."""
    parts = urlsplit(target)
    _, _, key = unquote(parts.path).lstrip("/").partition("/")
    query = parse_qs(parts.query, keep_blank_values=True)
    if method == "GET" and not key:
        return Request("LIST", query.get("prefix", [""])[0])
    if method == "POST" and "delete" in query:
        return Request("BULKDELETE", key)
    if method == "PUT" and "x-amz-copy-source" in headers:
        return Request("COPY", key)
    return Request(method, key)


KindOf = Callable[[str, str, Mapping[str, str]], Request]


def _handler(proxy: S3Proxy, upstream: int, kind_of: KindOf) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or the text of an answer waits 40 ms for the client to acknowledge its headers
        _behind: HTTPConnection | None = None

        def _serve(self) -> None:
            chunked = self.headers.get("Transfer-Encoding", "").lower() == "chunked"
            body = self._chunks() if chunked else self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            conditional = proxy.conditions and self.command == "PUT" and any(name.lower() in _CONDITIONS for name in headers)
            if conditional:
                ignored = {proxy.conditions} if proxy.conditions in _CONDITIONS else _CONDITIONS
                if any(name.lower() in ignored for name in headers):
                    body, headers = unchunked(body), signed(self.command, self.path, headers["Host"])
            request = kind_of(self.command, self.path, {name.lower(): value for name, value in headers.items()})
            time.sleep(proxy.latency.get(request.kind, 0.0))
            fault = proxy.noted(request)
            answer = None
            if conditional and proxy.conditions == "refused":
                answer = _refusal(501)
            elif fault is None or fault.carried_out:
                with proxy.around_change(request) if re.fullmatch(CHANGES, request.kind) else nullcontext():
                    answer = self._ask(body, headers)
            if fault is not None:
                time.sleep(fault.hold)
            if fault is not None and fault.act is not None:
                fault.act()
            if fault is not None:
                answer = self._ask(body, headers) if fault.passes else _refusal(fault.status) if fault.status else None
            if answer is None:
                self.close_connection = True
            else:
                self._answer(answer)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815

        def _chunks(self) -> bytes:
            body = b""
            while length := int(self.rfile.readline(), 16):
                body += self.rfile.read(length)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def _ask(self, body: bytes, headers: Mapping[str, str]) -> Answer:
            for again in (False, True):
                behind = self._behind or HTTPConnection("127.0.0.1", upstream, timeout=60)
                self._behind = behind
                try:
                    behind.request(self.command, self.path, body, dict(headers))
                    answer = behind.getresponse()
                    return Answer(answer.status, answer.reason, answer.getheaders(), answer.read())
                except (HTTPException, OSError):  # an idle connection that the server has closed
                    behind.close()
                    self._behind = None
                    if again:
                        raise
            raise AssertionError("unreachable")

        def _answer(self, answer: Answer) -> None:
            self.send_response_only(answer.status, answer.reason)
            length = ""
            for name, value in answer.headers:
                if name.lower() == "content-length":
                    length = value
                elif name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            # That of a HEAD is what a GET would have.
            self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(answer.text)))
            self.end_headers()
            if self.command != "HEAD":  # a client reads none, and would take it for the start of the next answer
                self.wfile.write(answer.text)

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:  # the client was killed
                pass
            finally:
                if self._behind is not None:
                    self._behind.close()

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _refusal(status: int) -> Answer:
    code = {403: "AccessDenied", 501: "NotImplemented", 503: "SlowDown"}.get(status, "InternalError")
    text = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>on purpose</Message></Error>'
    return Answer(status, "Refused", [("Content-Type", "application/xml")], text.encode())


@contextmanager
def s3_proxy(upstream: int, kind_of: KindOf = kind_of) -> Iterator[S3Proxy]:
    """Run a proxy in front of the server at a port; one of another kind than S3 has other requests."""
    proxy = S3Proxy()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(proxy, upstream, kind_of))
    server.daemon_threads = True
    proxy.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
