"""What the states of a SparkApplication mean, and what is asked of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from spark_drain_operator.applications.kubeflow import KubeflowAdapter, activity_of
from spark_drain_operator.applications.protocol import Activity, Application
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.applications import ApplicationObjects
from spark_drain_operator.storage.watch_cache import WatchCache
from spark_drain_store.kube_client import ApiError

from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import ApiServer


@pytest.mark.parametrize(
    ("state", "suspend", "activity"),
    [
        ("", False, Activity.STARTING),
        ("", True, Activity.SUSPENDED),
        ("SUBMITTED", False, Activity.STARTING),
        ("SUBMISSION_FAILED", False, Activity.STARTING),
        ("RUNNING", False, Activity.RUNNING),
        ("RUNNING", True, Activity.RUNNING),
        ("UNKNOWN", False, Activity.RUNNING),
        ("SUSPENDING", True, Activity.STOPPING),
        ("SUSPENDED", True, Activity.SUSPENDED),
        ("SUSPENDED", False, Activity.STARTING),
        ("RESUMING", False, Activity.STARTING),
        ("PENDING_RERUN", False, Activity.STARTING),
        ("INVALIDATING", False, Activity.STARTING),
        ("FAILING", False, Activity.STOPPING),
        ("SUCCEEDING", False, Activity.STOPPING),
        ("COMPLETED", False, Activity.ENDED),
        ("FAILED", False, Activity.ENDED),
        ("A_LATER_VERSION", False, Activity.STARTING),
    ],
)
def test_what_a_state_of_kubeflow_means(state: str, suspend: bool, activity: Activity) -> None:
    assert activity_of(state, suspend_requested=suspend) is activity


@pytest.mark.apiserver
@pytest.mark.parametrize("ask", [KubeflowAdapter.suspend, KubeflowAdapter.delete])
def test_only_what_was_observed_is_scaled_down(
    api_server: ApiServer, namespace: str, ask: Callable[[KubeflowAdapter, str, Application], None]
) -> None:
    """An operator that stood still meanwhile, or one whose request arrives late, would end the next version."""
    application, adapter = ScriptedApplication(api_server.client, namespace), KubeflowAdapter(Cluster.over(api_server.client))
    application.create().start()
    observed = adapter.observe(namespace, application.name)
    assert observed is not None
    application.suspend()
    application.resume()
    application.start("spark-two")
    with pytest.raises(ApiError) as refused:
        ask(adapter, namespace, observed)
    assert refused.value.status == 409
    assert not application.suspended
    observed = adapter.observe(namespace, application.name)
    assert observed is not None
    ask(adapter, namespace, observed)
    assert not application.exists or application.suspended


@pytest.mark.apiserver
@pytest.mark.parametrize("ask", [KubeflowAdapter.suspend, KubeflowAdapter.delete])
def test_what_only_its_own_operator_has_noted_since_does_not_matter(
    api_server: ApiServer, namespace: str, ask: Callable[[KubeflowAdapter, str, Application], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status of an application with many executors changes many times a second."""
    application, adapter = ScriptedApplication(api_server.client, namespace), KubeflowAdapter(Cluster.over(api_server.client))
    application.create().start()
    observed = adapter.observe(namespace, application.name)
    assert observed is not None
    looked = []
    get = ApplicationObjects.get

    def busy(*arguments: Any, **options: Any) -> dict[str, Any] | None:
        body = get(*arguments, **options)
        looked.append(body)
        if len(looked) < 3:
            application.set_state("RUNNING" if len(looked) % 2 else "UNKNOWN")
        return body

    monkeypatch.setattr(ApplicationObjects, "get", busy)
    application.set_state("UNKNOWN")
    ask(adapter, namespace, observed)
    assert len(looked) == 3
    assert not application.exists or application.suspended


@pytest.mark.apiserver
def test_a_driver_is_not_seen_with_an_earlier_spec_than_its_own(api_server: ApiServer, namespace: str) -> None:
    """A next version that begins while the application is observed would be taken for the drained one, and suspended."""
    cluster = Cluster.over(api_server.client)
    application = ScriptedApplication(api_server.client, namespace)
    application.create().start()
    adapter = KubeflowAdapter(cluster)
    before = adapter.observe(namespace, application.name)
    assert before is not None

    class Changing(ApplicationObjects):
        def get(self, *arguments: Any, **options: Any) -> dict[str, Any] | None:
            found = super().get(*arguments, **options)
            application.change(image="next")
            application.restart("spark-two")
            return found

    seen = KubeflowAdapter(replace(cluster, applications=Changing(api_server.client, WatchCache()))).observe(namespace, application.name)
    assert seen is not None
    assert seen.spec_digest == before.spec_digest
    assert "spark-two" not in {driver.run_id for driver in seen.drivers}


@pytest.mark.apiserver
def test_an_application_that_names_the_run_of_its_driver_is_not_asked_for(api_server: ApiServer, namespace: str) -> None:
    """Its spec is the one that the driver was started with, or a later one."""
    cluster = Cluster.over(api_server.client)
    application = ScriptedApplication(api_server.client, namespace)
    application.create().start()
    cluster.cache.watch(KubeflowAdapter.watched)
    cluster.cache.heard(KubeflowAdapter.watched.plural, namespace)
    told = application.body()
    cluster.cache.put(KubeflowAdapter.watched.plural, told)
    application.label(seen="no")
    adapter = KubeflowAdapter(cluster)
    behind = adapter.observe(namespace, application.name)
    assert behind is not None
    assert behind.version == told["metadata"]["resourceVersion"]
    application.change(image="next")
    application.restart("spark-two")
    seen = adapter.observe(namespace, application.name)
    assert seen is not None
    assert seen.serving_driver is not None
    assert seen.serving_driver.run_id == "spark-two"
    assert seen.version == application.body()["metadata"]["resourceVersion"]
    assert seen.spec_digest != behind.spec_digest
