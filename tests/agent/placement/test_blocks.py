"""What becomes of cached and shuffled blocks: by table, and on a real cluster."""

from __future__ import annotations

import pytest
from spark_drain_agent.placement.blocks import blocks_note
from spark_drain_store.placement_messages import PlacementStatus

from tests.agent.placement.cluster import other, placed_on_three_nodes
from tests.support.apiserver import ApiServer

ENABLED = {"spark.decommission.enabled": "true", "spark.storage.decommission.enabled": "true"}


@pytest.mark.parametrize(
    ("confs", "forced", "told"),
    [
        ({}, False, "cached and shuffled blocks go with it, and are computed again where they are needed (spark.decommission.enabled, "),
        ({"spark.decommission.enabled": "true"}, False, "needed (spark.storage.decommission.enabled is not true)"),
        (ENABLED, False, "cached and shuffled blocks are moved to other executors before it ends"),
        (ENABLED, True, "cached and shuffled blocks go with it, and are computed again where they are needed"),
        (
            ENABLED | {"spark.storage.decommission.rddBlocks.enabled": "false"},
            False,
            "shuffled blocks are moved to other executors before it ends, cached blocks go with it, and are computed again where they are "
            "needed (spark.storage.decommission.rddBlocks.enabled is not true)",
        ),
    ],
)
def test_what_becomes_of_blocks(confs: dict[str, str], forced: bool, told: str) -> None:
    note = blocks_note(confs, forced=forced)
    assert told in note
    assert ("(" in note) == ("(" in told)


@pytest.mark.apiserver
@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("confs", "again"), [(ENABLED, False), ({}, True)], ids=["moved", "not moved"])
def test_cached_blocks(confs: dict[str, str], again: bool, api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Four partitions are cached on two executors, which are both replaced; each batch needs all of them."""
    with placed_on_three_nodes(api_server, tmp_path_factory.mktemp("nodes"), program="placed_cached.py", **confs) as placed:
        two = placed.settled()

        def computed() -> int:
            return len((placed.base / "computed").read_text().splitlines())

        placed.batches(2)
        assert computed() == 4
        for executor, node in two.items():
            placed.reaches(placed.request(executor, other(node)), PlacementStatus.SUCCEEDED)
            placed.batches(1)
        assert (computed() > 4) == again
        placed.check_ledger()
