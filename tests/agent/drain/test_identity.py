"""Name and uid of the driver's pod from its service account token."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from spark_drain_agent.drain.identity import pod_from_token


def token(claims: Any) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'RS256'})}.{part(claims)}.c2lnbmF0dXJl"


@pytest.mark.parametrize("padding", ["", "x", "xx", "xxx"])
def test_bound_token_names_its_pod(padding: str) -> None:
    claims = {"kubernetes.io": {"namespace": "n", "pod": {"name": "flights-driver", "uid": "12-34"}}, "sub": padding}
    assert pod_from_token(token(claims)) == ("flights-driver", "12-34")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no token",
        "a.!!!.c",
        "a." + base64.urlsafe_b64encode(b"\xff\xfe").decode() + ".c",
        token({}),
        token([]),
        token({"kubernetes.io": {}}),
        token({"kubernetes.io": "text"}),
        token({"kubernetes.io": {"pod": {"name": "only a name"}}}),
    ],
)
def test_other_tokens_name_none(text: str) -> None:
    assert pod_from_token(text) == ("", "")
