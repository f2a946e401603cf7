"""A drain that is asked for while the application still starts its queries."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_drain_agent.durations import START

from tests.agent.harness import Drains, Driver

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(("slow_starts.py",), id="main"),
        pytest.param(("pool.py",), id="pool", marks=pytest.mark.soak),
        pytest.param(("pool.py", "any"), id="pool-and-main", marks=pytest.mark.soak),
    ],
)
def test_a_query_that_takes_its_time_to_start_is_drained_with_the_others(tmp_path: Path, program: tuple[str, ...]) -> None:
    script, *arguments = program
    drains = Drains(tmp_path / "store")
    asked = drains.write()
    driver = Driver(script, tmp_path, *arguments, store=drains, confs={START.name: "30"})
    try:
        drained = drains.reaches(asked, "Drained", driver=driver)
        assert {query["name"]: query["state"] for query in drained["queries"]} == {"first": "Drained", "second": "Drained"}
    finally:
        driver.close()
