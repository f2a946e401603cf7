"""etcd is restored from a backup under a running operator."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from spark_drain_store import DrainState

from devcluster.api import RunningControlPlane
from tests.operator.conftest import World
from tests.operator.outage import away
from tests.operator.process import OperatorProcess, without_proxy
from tests.operator.scripted_kubeflow import BackgroundKubeflow, ScriptedApplication
from tests.support.apiserver import KUBECONFIG, ApiServer, new_namespaces
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.apiserver,
    pytest.mark.skipif(KUBECONFIG in os.environ, reason="somebody else's API server is not restored"),
    # CPython 3.11 leaves a TLS socket open whose peer is killed between its accept and the handshake.
    pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning"),
]


@contextmanager
def worlds(server: ApiServer, folder: Path, count: int) -> Iterator[list[World]]:
    with new_namespaces(server, count) as names:
        operator = OperatorProcess(without_proxy(server.environment()), ",".join(names), folder / "operator.log")
        operator.start()
        try:
            yield [World(server, name, operator, ScriptedApplication(server.client, name)) for name in names]
        finally:
            if operator.running:
                operator.kill()
        assert "defect in the operator" not in operator.log(), operator.log()[-4000:]


def backed_up(plane: RunningControlPlane, backup: Path) -> None:
    with away(plane, etcd=True):
        shutil.copytree(plane.state_dir / "etcd", backup)


def restore(plane: RunningControlPlane, backup: Path) -> None:
    with away(plane, etcd=True):
        shutil.rmtree(plane.state_dir / "etcd")
        shutil.copytree(backup, plane.state_dir / "etcd")


def change_much(world: World) -> None:
    """Make hundreds of versions, which a restored server will take its time to reach."""
    for number in range(300):
        world.application.label(number=str(number))


@pytest.mark.soak
def test_drains_go_on_after_etcd_was_restored(plane: RunningControlPlane, server: ApiServer, tmp_path: Path) -> None:
    """kopf's watches, from a version of the future, would be silent: the operator ends, and the next one takes everything anew."""
    with worlds(server, tmp_path, 2) as (running, later):
        agent, drain_id = running.drain_at(DrainState.FLUSHING)
        later.application.create().start()
        backed_up(plane, tmp_path / "backup")
        change_much(running)
        lost = later.create_drain("lost")
        second = later.agent(later.application.run_id, later.application.driver_uid)
        second.await_notification()
        restore(plane, tmp_path / "backup")
        assert later.drain_is_gone("lost")
        operator = running.operator
        eventually(lambda: not operator.running, what="the operator ends", seconds=60)
        assert "was restored from a backup" in operator.log()
        operator.start()  # as Kubernetes does
        with BackgroundKubeflow(running.application):
            agent.drained(drain_id)
            running.await_phase("Drained")
        new = later.create_drain("new")
        assert new != lost
        second.await_notification()
        with BackgroundKubeflow(later.application):
            second.drain(new)
            later.await_phase("Drained", "new")
