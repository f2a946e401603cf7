"""Whether the operator can watch what it has to is looked at before it serves, and again and again."""

from pathlib import Path

import pytest
from spark_drain_operator import cli
from spark_drain_operator.kinds.drain.resource import RESOURCE
from spark_drain_operator.storage import access
from spark_drain_operator.storage.access import Access
from spark_drain_operator.storage.own_objects import Resource
from spark_drain_store.kube_client import KubeClient

from tests.support.apiserver import ApiServer, service_account
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


def test_what_is_missing_is_named(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    assert Access(api_server.client, [RESOURCE], [namespace]).missing() == ""
    assert Access(api_server.client, [RESOURCE], []).missing() == ""
    absent = Resource("PipelineNap", "pipelinenaps", "sparkdrain.io/nap", ("Rested",))
    assert "cannot watch pipelinenaps" in Access(api_server.client, [absent], []).missing()
    assert "apply the files of crds/" in Access(api_server.client, [absent], []).missing()
    nobody = KubeClient.from_kubeconfig(str(service_account(api_server, namespace, "default", tmp_path)))
    assert f"cannot watch pipelinedrains in namespace '{namespace}'" in Access(nobody, [RESOURCE], [namespace]).missing()
    nobody.close()


def test_what_may_be_listed_and_not_watched_is_named(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    api_server.run_kubectl("create", "role", "reader", "-n", namespace, "--verb=list", "--resource=pipelinedrains,configmaps,pods")
    api_server.run_kubectl("create", "rolebinding", "reader", "-n", namespace, "--role=reader", f"--serviceaccount={namespace}:default")
    reader = KubeClient.from_kubeconfig(str(service_account(api_server, namespace, "default", tmp_path)))
    assert "may not watch pipelinedrains" in Access(reader, [RESOURCE], [namespace]).missing()
    reader.close()


def test_what_goes_missing_later_is_found_beside_the_probes(api_server: ApiServer, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_SECONDS", 0.05)
    looking = Access(api_server.client, [Resource("PipelineNap", "pipelinenaps", "sparkdrain.io/nap", ("Rested",))], [namespace])
    assert looking.found == ""
    looking.thread.start()
    try:
        eventually(lambda: "cannot watch pipelinenaps" in looking.found, "it is found", 10)
    finally:
        looking.thread.stop()


def test_an_operator_that_may_not_watch_ends(
    api_server: ApiServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(access, "_RETRY_SECONDS", 0.05)
    kubeconfig = str(service_account(api_server, namespace, "default", tmp_path))
    monkeypatch.setattr(KubeClient, "from_environment", lambda: KubeClient.from_kubeconfig(kubeconfig))
    assert cli.main(["--namespaces", namespace]) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert "the operator cannot watch pipelinedrains" in line
    assert "grant its service account list and watch" in line
