"""Executors moved and restarted on every supported release: the private classes of Spark behind it differ."""

from __future__ import annotations

import pytest

from tests.agent.placement import test_dynamic_allocation as dynamic
from tests.agent.placement import test_move as moves
from tests.agent.spark_internals import test_dynamic_allocation as internals
from tests.versions.under import under
from tools import sparks

pytestmark = [pytest.mark.apiserver, pytest.mark.soak, pytest.mark.timeout(1800)]

CASES = ("test_successful_move", "test_an_expired_request_does_not_affect_the_running_executor", "TestDestinations::test_forced_restart")


DYNAMIC = (
    f"{internals.__file__}::test_an_executor_is_set_aside_and_taken_back",
    f"{dynamic.__file__}::test_no_idle_executor_goes_for_the_new_one",
    f"{dynamic.__file__}::test_a_placement_in_vain_leaves_the_number_to_spark",
)


@pytest.mark.parametrize("release", sparks.RELEASES)
def test_executors_are_replaced(release: str) -> None:
    under(release, *(f"{moves.__file__}::{case}" for case in CASES))


@pytest.mark.parametrize("release", sparks.RELEASES)
def test_executors_are_replaced_under_dynamic_allocation(release: str) -> None:
    under(release, *DYNAMIC)
