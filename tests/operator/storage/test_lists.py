"""Lists are taken over page by page."""

from collections.abc import Iterator

import pytest
from spark_drain_operator.storage.lists import objects_of
from spark_drain_store.kube_client import AnswerTooLargeError, KubeClient

from tests.support.apiserver import ApiServer

pytestmark = pytest.mark.apiserver


@pytest.fixture
def client(api_server: ApiServer) -> Iterator[KubeClient]:
    client = KubeClient.from_kubeconfig(str(api_server.kubeconfig))
    yield client
    client.close()


def create(client: KubeClient, namespace: str, count: int, data: str) -> str:
    """Create ConfigMaps; return the path of their list."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(count):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"large-{number:02}", "labels": {"large": "yes"}}}
        client.request("POST", path, body={**body, "data": {"a": data}})
    return path


def test_a_page_that_is_longer_than_an_answer_may_be_is_divided(client: KubeClient, namespace: str) -> None:
    """The API server writes six bytes for each of these characters: whoever may create a few objects would end all lists of them."""
    path = create(client, namespace, 12, "<" * 1_000_000)
    query = {"labelSelector": "large=yes"}
    with pytest.raises(AnswerTooLargeError):
        client.request("GET", path, query=query)
    names = [item["metadata"]["name"] for item in objects_of(client, path, query, page=100)]
    assert names == [f"large-{number:02}" for number in range(12)]


def test_an_object_that_is_longer_than_an_answer_may_be_is_told(
    client: KubeClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create(client, namespace, 2, "x")
    monkeypatch.setattr("spark_drain_store.kube_client._ANSWER_BYTES", 10)
    with pytest.raises(AnswerTooLargeError):
        list(objects_of(client, path, {}, page=100))
