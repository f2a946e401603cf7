"""Which events are news."""

from typing import Any

import kopf
import pytest
from kopf._cogs.structs.references import Resource
from spark_drain_operator.handlers.register import needs_a_pass, select
from spark_drain_operator.kinds.drain.resource import RESOURCE

ENDED = {"observedGeneration": 1, "conditions": [{"type": "Finished", "status": "True"}]}


@pytest.mark.parametrize(
    ("event", "body", "expected"),
    [
        (None, {"metadata": {"generation": 1}, "status": {"observedGeneration": 1}}, True),
        (None, {"metadata": {"generation": 1}, "spec": {}, "status": ENDED}, False),
        (None, {"metadata": {"generation": 2}, "spec": {}, "status": ENDED}, True),
        (None, {"metadata": {"generation": 1, "finalizers": ["sparkdrain.io/drain"]}, "spec": {}, "status": ENDED}, True),
        (None, {"metadata": {"generation": 1}, "spec": {"ttlSecondsAfterFinished": 0}, "status": ENDED}, True),
        ("ADDED", {"metadata": {"generation": 1}}, True),
        ("MODIFIED", {"metadata": {"generation": 1}, "status": {"observedGeneration": 1}}, False),
        ("MODIFIED", {"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}, True),
        ("MODIFIED", {"metadata": {"generation": 1, "deletionTimestamp": "now"}, "status": {"observedGeneration": 1}}, True),
    ],
)
def test_the_operators_own_writes_are_no_news(event: str | None, body: dict[str, Any], expected: bool) -> None:
    assert needs_a_pass(event, body) is expected


def test_what_is_selected_are_the_resources_that_kopf_watches() -> None:
    """A key that kopf takes for another resource would select nothing, silently."""
    settings = kopf.OperatorSettings()
    select(settings, [RESOURCE])
    watching = settings.watching
    (drains,) = watching.field_selectors.collect(Resource("sparkdrain.io", "v1alpha1", "pipelinedrains"))
    assert drains.startswith("status.phase!=Drained,")
