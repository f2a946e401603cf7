"""Whether a JVM that this process has not started is gone."""

from __future__ import annotations

import resource
import socket
from types import SimpleNamespace

import pytest
from spark_drain_agent.spark_internals import jvm_process
from spark_drain_agent.spark_internals.jvm_process import jvm_ended

MINE = jvm_process._FIRST_ANCESTORS


@pytest.mark.parametrize(
    ("below_a_jvm", "ancestors", "listens", "ended"),
    [
        (True, MINE, True, False),
        (True, MINE, False, False),
        (True, (*MINE, -1), True, False),
        (True, (*MINE, -1), False, True),
        (False, MINE, True, False),
        (False, MINE, False, True),
    ],
    ids=["child", "child, asked for nothing", "adopted", "adopted, JVM gone", "beside it", "beside it, JVM gone"],
)
def test_a_jvm_of_others(
    monkeypatch: pytest.MonkeyPatch, below_a_jvm: bool, ancestors: tuple[int, ...], listens: bool, ended: bool
) -> None:
    monkeypatch.setattr(jvm_process, "_BELOW_A_JVM", below_a_jvm)
    monkeypatch.setattr(jvm_process, "_FIRST_ANCESTORS", ancestors)
    monkeypatch.setattr(jvm_process, "_answers", {})
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listens:
            server.listen()
        parameters = SimpleNamespace(address="127.0.0.1", port=server.getsockname()[1])
        assert jvm_ended(SimpleNamespace(gateway_parameters=parameters)) is ended


def test_a_process_without_a_file_descriptor_left_has_not_lost_its_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm_process, "_BELOW_A_JVM", False)
    monkeypatch.setattr(jvm_process, "_answers", {})
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        parameters = SimpleNamespace(address="127.0.0.1", port=server.getsockname()[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
        try:
            ended = jvm_ended(SimpleNamespace(gateway_parameters=parameters))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert ended is False
