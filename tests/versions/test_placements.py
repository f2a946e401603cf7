"""Executors moved and restarted on every supported release: the private classes of Spark behind it differ."""

from __future__ import annotations

import pytest

from tests.agent.placement import test_move as moves
from tests.versions.under import under
from tools import sparks

pytestmark = [pytest.mark.apiserver, pytest.mark.soak, pytest.mark.timeout(1800)]

CASES = ("test_successful_move", "test_an_expired_request_does_not_affect_the_running_executor", "TestDestinations::test_forced_restart")


@pytest.mark.parametrize("release", sparks.RELEASES)
def test_executors_are_replaced(release: str) -> None:
    under(release, *(f"{moves.__file__}::{case}" for case in CASES))
