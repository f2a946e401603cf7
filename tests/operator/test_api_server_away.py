"""The API server is killed in the middle of drains, and comes back after their deadlines."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from spark_drain_agent.drain.identity import Identity
from spark_drain_agent.driver.agent import Agent
from spark_drain_agent.gate import Phase
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_operator.clock import parse_time
from spark_drain_store import Channel, DrainState
from spark_drain_store.channel import config_map_names
from spark_drain_store.configmap import ConfigMapStore
from spark_drain_store.kube_client import KubeClient

from devcluster.api import RunningControlPlane
from tests.operator.conftest import World, condition
from tests.operator.outage import away
from tests.operator.process import OperatorProcess, without_proxy
from tests.operator.scripted_kubeflow import BackgroundKubeflow, ScriptedApplication
from tests.support.apiserver import KUBECONFIG, ApiServer, new_namespaces
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.apiserver,
    pytest.mark.skipif(KUBECONFIG in os.environ, reason="somebody else's API server is not killed"),
    # CPython 3.11 leaves a TLS socket open whose peer is killed between its accept and the handshake.
    pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning"),
]

SECONDS = 10  # in which the API server can be killed, before the deadlines


class NoQueries:
    """Stands where the driver has no executors, and has started no query yet."""

    stopped = False
    application_id = "spark-one"
    context = SimpleNamespace(_gateway=None)

    def executors(self) -> list[tuple[str, str]]:
        return []

    def session_conf(self, _name: str, default: str) -> str:
        return default


@contextmanager
def agent_of(world: World, pod_uid: str) -> Iterator[Agent]:
    """Run the real agent, over the API server, as in a driver that has not started a query yet."""
    client = KubeClient.from_kubeconfig(str(world.server.kubeconfig))
    channel = Channel.over(*(ConfigMapStore(client, world.namespace, name) for name in config_map_names("app")))
    identity = Identity(run_id="spark-one", pod_name="app-driver", pod_uid=pod_uid, spark_version="4.2.0", agent_version="0.1.0")
    agent = Agent(cast(SparkInternals, NoQueries()), channel, identity)
    agent.begin()
    yield agent
    agent.close()
    client.close()


def end_in(world: World, seconds: float) -> datetime:
    """Move the deadline of an acknowledged drain to some seconds from now; returns it."""
    begun = parse_time(world.drain()["status"]["startTime"])
    timeout = int((datetime.now(UTC) - begun).total_seconds() + seconds)
    world.patch_drain(spec={"timeoutSeconds": timeout})
    return begun + timedelta(seconds=timeout)


def test_deadlines_that_pass_while_the_api_server_is_away(plane: RunningControlPlane, server: ApiServer, tmp_path: Path) -> None:
    """Before the point of no return the agent gives up by its own clock; afterwards, the operator does when it can ask again."""
    with ExitStack() as stack:
        names = stack.enter_context(new_namespaces(server, 3))
        operator = OperatorProcess(without_proxy(server.environment()), ",".join(names), tmp_path / "operator.log")
        asked, flushing, forced = (World(server, name, operator, ScriptedApplication(server.client, name)) for name in names)
        operator.start()
        stack.callback(operator.kill)
        flushing.drain_at(DrainState.FLUSHING)
        forced.drain_at(DrainState.FLUSHING, onTimeout="ForceStop")
        driver = asked.application.create().start()
        agent = stack.enter_context(agent_of(asked, driver))
        asked.create_drain()
        asked.await_phase("Acknowledged")
        drain = agent._drain
        assert drain is not None
        for world in (flushing, forced):
            end_in(world, SECONDS)
        deadline = end_in(asked, SECONDS)
        eventually(lambda: drain.request.deadline == deadline, what="the agent knows its deadline")
        with away(plane):
            assert drain.report.state is DrainState.ACKNOWLEDGED
            eventually(lambda: drain.report.state is DrainState.FAILED, what="the agent gives up")
            assert agent.gate.phase is Phase.OPEN
            assert operator.running
        with BackgroundKubeflow(forced.application):
            for world, phase in ((asked, "TimedOut"), (flushing, "TimedOut"), (forced, "ForceStopped")):
                ended = condition(world.await_phase(phase, seconds=120), "Succeeded")
                assert ended is not None
                assert (ended["status"], ended["reason"]) == ("False", "DeadlineExceeded")
                eventually(lambda world=world: not world.config_map(config_map_names("app")[0]).get("data"), what="no request is left")  # type: ignore[misc]
        assert asked.untouched
        assert flushing.untouched
        assert "defect in the operator" not in operator.log(), operator.log()[-4000:]
