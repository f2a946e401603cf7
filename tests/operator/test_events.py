"""Events are written beside the passes, and nothing that happens to them disturbs a pass."""

from typing import Any, cast

import pytest
from spark_drain_operator.storage.events import EventRecorder
from spark_drain_store.kube_client import KubeClient

from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually

ABOUT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "default", "uid": "no-uid", "resourceVersion": "1"},
}


class _Broken:
    """A client with a defect, which shows at the first request."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def request(self, method: str, path: str, *, body: dict[str, Any]) -> None:
        self.reasons.append(body["reason"])
        if len(self.reasons) == 1:
            raise RuntimeError("not one of the errors that the API server answers with")


def test_a_defect_costs_one_event(caplog: pytest.LogCaptureFixture) -> None:
    client = _Broken()
    recorder = EventRecorder(cast(KubeClient, client))
    recorder.record(ABOUT, "Normal", "First", "is lost")
    eventually(lambda: client.reasons == ["First"], "the first was tried")
    recorder.record(ABOUT, "Normal", "Second", "is written")
    eventually(lambda: client.reasons == ["First", "Second"], "the second was written", 5)
    recorder.close(5)
    assert "event First of default/settings could not be written: not one of the errors" in caplog.text


@pytest.mark.apiserver
def test_a_long_message_is_cut_to_what_the_api_server_takes_in_any_script(api_server: ApiServer, namespace: str) -> None:
    """It counts bytes."""
    about = {**ABOUT, "metadata": {**ABOUT["metadata"], "namespace": namespace}}  # type: ignore[dict-item]
    recorder = EventRecorder(api_server.client)
    message = "x" + "é" * 1000
    recorder.record(about, "Normal", "Long", message)
    recorder.close(20)
    (found,) = api_server.client.request("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    assert found["message"] == message[:512]
