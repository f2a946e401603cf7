"""The operator's clock is another one than the API server's."""

from email.utils import formatdate

import pytest
from spark_drain_operator.clock import ServerClock, format_time, later, now
from spark_drain_store import DrainState

from tests.operator.conftest import World, condition

REFERENCE = 1_800_000_000.0


@pytest.mark.parametrize(
    ("answers", "ahead"),
    [
        ([(0, 0, 0)], 0),
        ([(-2, 0.9, 0.9)], -1.9),
        ([(-1, 0.9, 0.9)], 0),  # as far as whole seconds tell
        ([(0, 0, 6)], 0),  # an answer that takes its time says little
        ([(6, 0, 6)], 0),
        ([(90, 0, 0.1)], 89.9),
        ([(90, 0, 0.1), (91, 0.5, 0.6)], 89.9),
        ([(90, 0, 6), (96, 6.0, 6.1)], 89.9),
        ([(-90, 0, 0.1)], -89.0),
        ([(90, 0, 0.1), (1, 0.5, 0.6)], 1.5),  # it was put right
        ([(90, 5, 0)], 0),  # this machine's clock was, in between
    ],
)
def test_how_far_the_clock_of_the_api_server_is_ahead(answers: list[tuple[float, float, float]], ahead: float) -> None:
    clock = ServerClock()
    for date, asked, answered in answers:
        clock.tell(formatdate(REFERENCE + date, usegmt=True), REFERENCE + asked, REFERENCE + answered)
    assert clock.ahead == pytest.approx(ahead, abs=0.001)


@pytest.mark.parametrize("date", ["", "tomorrow", "Mon, 99 Foo 2026 00:00:00 GMT"])
def test_an_answer_without_a_date_says_nothing(date: str) -> None:
    clock = ServerClock()
    clock.tell(date, REFERENCE, REFERENCE)
    assert clock.ahead == 0


@pytest.fixture(params=[90, -90], ids=["ahead", "behind"])
def world(request: pytest.FixtureRequest, own_world: World) -> World:
    """Return a world whose operator runs on a machine with a wrong clock."""
    own_world.operator.shift_clock(request.param)
    own_world.operator.start()
    return own_world


@pytest.mark.apiserver
def test_a_drain_expires_by_the_clock_of_the_api_server(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain(expirationSeconds=60, acknowledgeTimeoutSeconds=600, execution="AfterApproval")
    agent.await_notification()
    agent.report(drain_id, DrainState.ACKNOWLEDGED)
    world.await_phase("AwaitingApproval")
    soon = format_time(later(now(), 4))
    world.create_drain("soon", expirationTime=soon, applicationRef={**world.drain()["spec"]["applicationRef"], "name": "missing"})
    world.await_phase("Expired", "soon", seconds=30)
    assert format_time(now()) >= soon
    assert world.drain()["status"]["phase"] == "AwaitingApproval"


@pytest.mark.apiserver
def test_a_next_version_that_was_applied_just_before_the_first_look_is_seen(world: World) -> None:
    ended = world.drain_just_after_a_next_version()
    assert condition(ended, "Succeeded")["reason"] == "SpecChanged"  # type: ignore[index]
