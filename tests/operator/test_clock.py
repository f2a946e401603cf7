"""The operator's clock is another one than the API server's."""

import time as machine
from email.utils import formatdate

import pytest
from spark_drain_operator.clock import ServerClock, format_time, later, now
from spark_drain_store import DrainState

from tests.operator.conftest import World, condition
from tests.operator.scripted_kubeflow import BackgroundKubeflow

REFERENCE, STEADY = 1_800_000_000.0, 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ServerClock:
    """Return a clock on a machine whose steady clock stands still."""
    monkeypatch.setattr(machine, "monotonic", lambda: STEADY)
    monkeypatch.setattr(machine, "time", lambda: REFERENCE)
    return ServerClock()


def tell(clock: ServerClock, date: float, asked: float, answered: float) -> None:
    """Tell of an answer: times are from the reference on."""
    clock.tell(formatdate(REFERENCE + date, usegmt=True), STEADY + asked, STEADY + answered)


@pytest.mark.parametrize(
    ("answers", "ahead"),
    [
        ([(0, 0, 0)], 0),
        ([(-2, 0.9, 0.9)], -1.9),
        ([(-1, 0.9, 0.9)], 0),  # as far as whole seconds tell
        ([(0, 0, 6)], 0),
        ([(0, 0, 30)], 0),  # an answer that takes its time says little
        ([(6, 0, 6)], 0),
        ([(90, 0, 0.1)], 89.9),
        ([(90, 0, 0.1), (92, 1.5, 1.6)], 89.9),
        ([(90, 0, 6), (98, 8.0, 8.1), (99, 9.2, 9.3)], 89.7),
        ([(-90, 0, 0.1)], -89.0),
        ([(90, 0, 0.1), (2, 1.4, 1.5), (3, 2.4, 2.5)], 1.6),  # it was put right
        ([(0, 0, 0.1), (90, 0.2, 0.3)], 0),  # of the same second
    ],
)
def test_how_far_the_clock_of_the_api_server_is_ahead(clock: ServerClock, answers: list[tuple[float, float, float]], ahead: float) -> None:
    for answer in answers:
        tell(clock, *answer)
    assert clock.now() - REFERENCE == pytest.approx(ahead, abs=0.001)


def test_of_several_api_servers_one_is_wrong(clock: ServerClock, caplog: pytest.LogCaptureFixture) -> None:
    for second in range(120):
        tell(clock, second + (7200 if second % 3 == 1 else 0), second, second)
        assert clock.now() - REFERENCE == 0
    assert not caplog.records


def test_a_clock_that_is_set_is_followed(clock: ServerClock, caplog: pytest.LogCaptureFixture) -> None:
    for second in range(120):
        tell(clock, second + (0 if second < 60 else 7200), second, second)
    assert clock.now() - REFERENCE == pytest.approx(7200, abs=1)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("date", ["", "tomorrow", "Mon, 99 Foo 2026 00:00:00 GMT"])
def test_an_answer_without_a_date_says_nothing(clock: ServerClock, date: str) -> None:
    clock.tell(date, STEADY, STEADY)
    assert clock.now() == REFERENCE


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
    agent.report(drain_id, DrainState.ACKNOWLEDGED, reason="AwaitingApproval")
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


@pytest.mark.apiserver
def test_one_of_three_api_servers_has_a_wrong_clock(own_world: World) -> None:
    own_world.operator.shift_one_server(300)
    own_world.operator.start()
    agent = own_world.run_application()
    drain_id = own_world.create_drain(expirationSeconds=120, timeoutSeconds=120)
    agent.await_notification()
    for state in (DrainState.ACKNOWLEDGED, DrainState.STOPPING, DrainState.FLUSHING):
        agent.report(drain_id, state)
        own_world.await_phase(str(state))
    with BackgroundKubeflow(own_world.application):
        agent.drain(drain_id)
        own_world.await_phase("Drained")
    assert "the API server's clock is" not in own_world.operator.log()
