"""Whether the operator can watch what it has to is looked at before it serves, and again and again."""

from pathlib import Path

import pytest
from spark_drain_operator import cli
from spark_drain_operator.kinds.drain.resource import RESOURCE
from spark_drain_operator.storage import access
from spark_drain_operator.storage.access import Access, is_news
from spark_drain_operator.storage.own_objects import Resource
from spark_drain_store.kube_client import KubeClient

from tests.support.apiserver import ApiServer, service_account
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


def test_what_is_missing_is_named(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    assert Access(api_server.client, [RESOURCE], [namespace]).problems() == {}
    assert Access(api_server.client, [RESOURCE], []).problems() == {}
    absent = Resource("PipelineNap", "pipelinenaps", "sparkdrain.io/nap", ("Rested",))
    assert "cannot watch pipelinenaps" in Access(api_server.client, [absent], []).problems()[""]
    assert "apply the files of crds/" in Access(api_server.client, [absent], []).problems()[""]
    nobody = KubeClient.from_kubeconfig(str(service_account(api_server, namespace, "default", tmp_path)))
    assert f"cannot watch pipelinedrains in namespace '{namespace}'" in Access(nobody, [RESOURCE], [namespace]).problems()[namespace]
    nobody.close()


def test_a_definition_that_the_watch_cannot_select_by_is_named(api_server: ApiServer, namespace: str) -> None:
    """As one from an older cluster, or one that was written by hand."""
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "pipelinenaps.sparkdrain.io"},
        "spec": {
            "group": "sparkdrain.io",
            "scope": "Namespaced",
            "names": {"plural": "pipelinenaps", "kind": "PipelineNap"},
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api_server.client.request("POST", path, body=definition)
    nap = Resource("PipelineNap", "pipelinenaps", "sparkdrain.io/nap", ("Rested",))
    looking = Access(api_server.client, [nap], [namespace])

    def named() -> str:
        said = looking.problems().get(namespace, "")
        return "" if "(404" in said else said

    try:
        found = eventually(named, "it is served and named", 20)
    finally:
        api_server.client.request("DELETE", f"{path}/pipelinenaps.sparkdrain.io")
    assert "cannot watch pipelinenaps" in found
    assert "the installed definition has no selectableFields: apply the files of crds/" in found


def test_what_may_be_listed_and_not_watched_is_named(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    api_server.run_kubectl("create", "role", "reader", "-n", namespace, "--verb=list", "--resource=pipelinedrains,configmaps,pods")
    api_server.run_kubectl("create", "rolebinding", "reader", "-n", namespace, "--role=reader", f"--serviceaccount={namespace}:default")
    reader = KubeClient.from_kubeconfig(str(service_account(api_server, namespace, "default", tmp_path)))
    assert "may not watch pipelinedrains" in Access(reader, [RESOURCE], [namespace]).problems()[namespace]
    reader.close()


@pytest.mark.parametrize(
    ("told", "found", "seconds", "expected"),
    [
        (set(), set(), 9999.0, False),
        (set(), {"b"}, 1.0, True),
        ({"b"}, {"b"}, 1.0, False),
        ({"b"}, {"b"}, 3600.0, True),
        ({"b"}, {"c"}, 1.0, True),
        ({"b"}, set(), 1.0, True),
    ],
)
def test_a_namespace_that_cannot_be_watched_is_not_told_at_each_look(
    told: set[str], found: set[str], seconds: float, expected: bool
) -> None:
    assert is_news(told, found, seconds) is expected


def test_a_namespace_that_cannot_be_watched_is_no_end_of_the_others(
    api_server: ApiServer, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    verbs, resources = "--verb=list,watch", "--resource=pipelinedrains,configmaps,pods"
    api_server.run_kubectl("create", "role", "watcher", "-n", namespace, verbs, resources)
    api_server.run_kubectl("create", "rolebinding", "watcher", "-n", namespace, "--role=watcher", f"--serviceaccount={namespace}:default")
    watcher = KubeClient.from_kubeconfig(str(service_account(api_server, namespace, "default", tmp_path)))
    looking = Access(watcher, [RESOURCE], ["deleted", namespace])
    looking.await_first()
    looking.look()
    assert looking.watchable == (namespace,)
    assert looking.found == ""
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "cannot watch pipelinedrains in namespace 'deleted'" in warning
    watcher.close()


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
