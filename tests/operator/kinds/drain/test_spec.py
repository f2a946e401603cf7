"""The spec of a drain."""

from typing import Any

import pytest
from spark_drain_operator.engine.kind import InvalidSpecError
from spark_drain_operator.kinds.drain.spec import DrainSpec


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"applicationRef": {}},
        {"applicationRef": None},
        {"applicationRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}, "timeoutSeconds": "soon"},
    ],
)
def test_a_spec_that_slipped_past_the_schema_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpecError, match="apply the CustomResourceDefinition"):
        DrainSpec.parse(spec)
