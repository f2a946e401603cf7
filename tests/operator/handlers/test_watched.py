"""Which objects wait for what."""

from spark_drain_operator.engine.workers import ObjectKey
from spark_drain_operator.handlers.watched import Watched


def test_watched_drains_by_application() -> None:
    watched = Watched()
    first, second = ObjectKey("PipelineDrain", "ns", "first"), ObjectKey("PipelineDrain", "ns", "second")
    watched.track(first, "SparkApplication", "app")
    watched.track(second, "SparkApplication", "app")
    watched.track(second, "SparkApplication", "app")
    assert set(watched.of_application("ns", "app")) == {first, second}
    assert set(watched.of_config_map("ns", "sparkapplication-app-agent-reports")) == {first, second}
    assert set(watched.of_config_map("ns", "sparkapplication-app-agent-requests")) == {first, second}
    assert watched.of_application("other", "app") == ()
    assert watched.of_config_map("ns", "app") == ()
    watched.forget(first)
    watched.forget(first)
    assert watched.of_application("ns", "app") == (second,)


def test_those_whose_application_stands_still_go_first() -> None:
    watched = Watched()
    standing, waiting, ended = (ObjectKey("PipelineDrain", "ns", name) for name in ("standing", "waiting", "ended"))
    watched.hasten(ended)  # an event that came after its end
    for key in (standing, waiting):
        watched.track(key, "SparkApplication", key.name)
    watched.hasten(standing)
    assert [watched.rank(key) for key in (standing, waiting, ended)] == [0, 1, 2]
    watched.forget(standing)
    assert watched.rank(standing) == 2


def test_a_placement_stops_no_application_and_does_not_go_first() -> None:
    watched = Watched()
    placement = ObjectKey("ExecutorPlacement", "ns", "placement")
    watched.track(placement, "SparkApplication", "app", stops=False)
    watched.hasten(placement)
    assert watched.rank(placement) == 1
    assert watched.of_application("ns", "app") == (placement,)
