"""A request to an S3 server that a test's proxy makes in the place of a client's, whose signature covers what the proxy changes."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime
from hashlib import sha256

__all__ = ["ACCESS", "SECRET", "signed", "unchunked"]

ACCESS, SECRET = "tests", "testssecret"
_REGION = "us-east-1"
_UNSIGNED = "UNSIGNED-PAYLOAD"


def signed(method: str, path: str, host: str) -> dict[str, str]:
    """Return the headers of a request without a query (Signature Version 4 of AWS), whose body may be anything."""
    now = datetime.now(UTC)
    headers = {"host": host, "x-amz-content-sha256": _UNSIGNED, "x-amz-date": now.strftime("%Y%m%dT%H%M%SZ")}
    names = ";".join(headers)
    canonical = "\n".join((method, path, "", *(f"{name}:{value}" for name, value in headers.items()), "", names, _UNSIGNED))
    scope = (now.strftime("%Y%m%d"), _REGION, "s3", "aws4_request")
    key = f"AWS4{SECRET}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), sha256)
    text = "\n".join(("AWS4-HMAC-SHA256", headers["x-amz-date"], "/".join(scope), sha256(canonical.encode()).hexdigest()))
    signature = hmac.digest(key, text.encode(), sha256).hex()
    credential = f"{ACCESS}/{'/'.join(scope)}"
    return {**headers, "Authorization": f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"}


def unchunked(body: bytes) -> bytes:
    """Return what is in a body whose chunks are signed one by one (``aws-chunked``)."""
    found = b""
    while body:
        head, _, body = body.partition(b"\r\n")
        length = int(head.partition(b";")[0], 16)
        found, body = found + body[:length], body[length + 2 :]
    return found
