"""What Docker and kind are asked to do, seen from programs in their places."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from devcluster import clusters, kindcluster
from devcluster.cli import main
from devcluster.errors import DevclusterError, MissingPrerequisiteError
from devcluster.images.builders import Docker
from devcluster.images.loading import load
from devcluster.images.recipes import RECIPES, Recipe
from devcluster.kindcluster import KindCluster
from devcluster.paths import REPOSITORY, cluster_dir
from devcluster.progress import Progress
from tests.devcluster.stand_in import StandIn

CONFIG = str(REPOSITORY / "kind-config.yaml")
NODES = {"dev-control-plane": "control-plane", "dev-worker": "worker", "dev-worker2": "worker"}
KINDS_OWN = "kindest/node:v1.36.4"


def listed(state: str = "running", shared: str = "") -> str:
    """Return nodes as docker lists them, by default with the shared folder of cluster ``dev``."""
    mounts = f"/lib/modules,{shared or cluster_dir('dev') / 'shared'},5f1c"
    return "\n".join(f"{name}\t{role}\t{state}\t{KINDS_OWN}\t{mounts}" for name, role in NODES.items())


def nodes_say(kubectl: StandIn, heartbeat: datetime, count: int = 3, pods: tuple[object, ...] = ()) -> None:
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat.isoformat()}
    nodes = [{"kind": "Node", "metadata": {"name": name}, "status": {"conditions": [condition]}} for name in [*NODES][:count]]
    kubectl.says(json.dumps({"items": [*nodes, *pods]}), 0, "--kubeconfig")


def pod(began: datetime, ready: str = "True") -> dict[str, object]:
    status = {
        "conditions": [{"type": "Ready", "status": ready}],
        "containerStatuses": [{"state": {"running": {"startedAt": began.isoformat()}}}, {"state": {"terminated": {}}}],
    }
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "dev-worker"}, "status": status}


def started(docker: StandIn, *moments: datetime) -> None:
    docker.says("\n".join(moment.strftime("%Y-%m-%dT%H:%M:%S.123456789Z") for moment in moments), 0, "inspect")


@pytest.fixture
def cluster(docker: StandIn, kind: StandIn, kubectl: StandIn) -> KindCluster:
    """Return one that was not created yet, and whose nodes will be Ready at once."""
    docker.says("", 0, "inspect")
    nodes_say(kubectl, datetime.now(UTC) + timedelta(minutes=5))
    cluster = KindCluster(cluster_dir("dev"))
    cluster.folder.mkdir(parents=True)
    return cluster


@pytest.fixture
def made(cluster: KindCluster, docker: StandIn, kind: StandIn) -> KindCluster:
    """Return one that runs."""
    up(cluster)
    docker.says(listed(), 0, "ps")
    started(docker, *[datetime(2026, 1, 1, tzinfo=UTC)] * len(NODES))
    docker.forget()
    kind.forget()
    return cluster


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kindcluster, "_NODE_SECONDS", 0.1)


def up(cluster: KindCluster) -> None:
    cluster.up(Progress(kindcluster.STEPS, quiet=True))


def test_a_cluster_is_made_from_our_configuration(cluster: KindCluster, kind: StandIn) -> None:
    assert not cluster.is_up()
    up(cluster)
    kubeconfig = ("--kubeconfig", str(cluster.kubeconfig), "--name", "dev")
    assert kind.calls() == [["create", "cluster", "--config", CONFIG, *kubeconfig], ["export", "kubeconfig", *kubeconfig]]


def test_its_shared_folder_is_its_own(cluster: KindCluster) -> None:
    up(cluster)
    assert (cluster.folder / "shared").stat().st_mode & 0o7777 == 0o1777
    assert re.findall(r"hostPath: (\S+)", Path(CONFIG).read_text()) == ["shared"]  # kind is started in the cluster's folder


def test_another_node_image_can_be_named(cluster: KindCluster, kind: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_DRAIN_KIND_IMAGE", "mirror.example/kindest/node:v1.36.4")
    up(cluster)
    assert "--image mirror.example/kindest/node:v1.36.4" in " ".join(kind.calls("create")[0])


def test_who_cannot_pull_the_node_image_is_told_how_to_name_another(cluster: KindCluster, kind: StandIn) -> None:
    kind.says('ERROR: failed to pull image "kindest/node"', 1, "create")
    with pytest.raises(DevclusterError, match="SPARK_DRAIN_KIND_IMAGE"):
        up(cluster)


def test_an_engine_that_hangs_is_not_waited_for(made: KindCluster, docker: StandIn) -> None:
    docker.says("Cannot connect to the Docker daemon", 1, "version")
    for ask in (made.is_up, lambda: made.load("example:dev"), lambda: Docker().build(RECIPES["spark-drain-operator:dev"])):
        with pytest.raises(MissingPrerequisiteError, match="no Docker engine answers"):
            ask()


def test_what_runs_is_left_alone(made: KindCluster, docker: StandIn, kind: StandIn) -> None:
    assert made.is_up()
    up(made)
    assert [call[0] for call in kind.calls()] == ["export"]
    assert docker.calls("start") == docker.calls("stop") == []


def test_stopped_nodes_are_started(made: KindCluster, docker: StandIn, kind: StandIn) -> None:
    docker.says(listed("exited"), 0, "ps")
    assert not made.is_up()
    up(made)
    assert docker.calls("start") == [["start", *NODES]]
    assert [call[0] for call in kind.calls()] == ["export"]  # the API server has another port now


def test_an_interrupted_creation_is_begun_anew(cluster: KindCluster, docker: StandIn, kind: StandIn) -> None:
    kind.says("signal: interrupt", 130, "create")
    with pytest.raises(DevclusterError, match="signal: interrupt"):
        up(cluster)
    docker.says(listed(), 0, "ps")
    assert not cluster.is_up()
    kind.says("", 0, "create")
    kind.forget()
    started(docker, *[datetime.now(UTC)] * len(NODES))
    up(cluster)
    assert [call[0] for call in kind.calls()] == ["delete", "create", "export"]
    assert cluster.is_up()


def test_a_cluster_that_somebody_else_made_is_not_touched(cluster: KindCluster, docker: StandIn, kind: StandIn) -> None:
    docker.says(listed(shared="/home/other/shared"), 0, "ps")
    with pytest.raises(DevclusterError, match=r"a cluster 'dev' that is not devcluster's: use another --name, or .*`kind delete"):
        up(cluster)
    cluster.down(purge=True)
    assert kind.calls() == []
    assert docker.calls("stop") == []


def test_a_cluster_that_was_made_by_hand_after_ours_is_not_touched(made: KindCluster, docker: StandIn, kind: StandIn) -> None:
    docker.says(listed(shared="/home/other/shared"), 0, "ps")
    assert not made.is_up()
    with pytest.raises(DevclusterError, match="not devcluster's"):
        up(made)
    made.down()
    made.down(purge=True)
    assert docker.calls("stop") == []
    assert [call[0] for call in kind.calls()] == []


def test_a_cluster_that_was_made_by_hand_after_ours_failed_is_not_touched(cluster: KindCluster, docker: StandIn, kind: StandIn) -> None:
    kind.says("failed to pull image", 1, "create")
    with pytest.raises(DevclusterError, match="failed to pull image"):
        up(cluster)
    docker.says(listed(shared="/home/other/shared"), 0, "ps")
    kind.forget()
    with pytest.raises(DevclusterError, match="not devcluster's"):
        up(cluster)
    cluster.down()
    cluster.down(purge=True)
    assert docker.calls("stop") == []
    assert kind.calls() == []


@pytest.mark.usefixtures("impatient")
def test_nodes_that_an_engine_stops_late_are_started(made: KindCluster, docker: StandIn, kubectl: StandIn) -> None:
    """By a `down` that was interrupted, and that the engine goes on with."""
    nodes_say(kubectl, datetime.now(UTC) - timedelta(minutes=5), count=1)
    docker.says(listed("exited"), 0, "ps")
    with pytest.raises(DevclusterError):
        made._await_nodes()
    assert docker.calls("start")[0] == ["start", *NODES]


def test_a_name_that_was_taken_on_a_full_disk_is_free(cluster: KindCluster) -> None:
    (cluster.folder / "provider").write_text("")
    cluster.folder.with_name(".dev.lock").touch()  # as each `up` leaves it
    assert clusters.known() == []
    assert clusters.create("dev", "kind", control_plane_only=False)[0] == "kind"


@pytest.mark.usefixtures("impatient")
def test_workers_that_are_not_ready_are_waited_for(cluster: KindCluster, docker: StandIn, kubectl: StandIn) -> None:
    docker.says(listed(), 0, "ps")
    started(docker, *[datetime(2026, 1, 1, tzinfo=UTC)] * len(NODES))
    (cluster.folder / "creation").write_text("done\n")
    nodes_say(kubectl, datetime.now(UTC), count=1)
    with pytest.raises(DevclusterError, match=r"not Ready after 0 s: dev-worker, dev-worker2\. .*down --purge --name dev"):
        up(cluster)


@pytest.mark.usefixtures("impatient")
def test_what_nodes_said_before_they_were_stopped_does_not_count(made: KindCluster, docker: StandIn, kubectl: StandIn) -> None:
    docker.says(listed("exited"), 0, "ps")
    started(docker, *[datetime.now(UTC)] * len(NODES))
    nodes_say(kubectl, datetime.now(UTC) - timedelta(minutes=1))
    with pytest.raises(DevclusterError, match="not Ready after 0 s: dev-control-plane, dev-worker, dev-worker2"):
        up(made)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("ready", "waits"), [("True", True), ("False", False)])
def test_pods_are_not_ready_with_containers_that_ended_with_their_node(
    made: KindCluster, docker: StandIn, kubectl: StandIn, ready: str, waits: bool
) -> None:
    """A pod that is not Ready may be so for good; one that says so from before the stop does not know yet."""
    docker.says(listed("exited"), 0, "ps")
    started(docker, *[datetime.now(UTC)] * len(NODES))
    later = datetime.now(UTC) + timedelta(minutes=1)
    nodes_say(kubectl, later, pods=(pod(later), pod(datetime.now(UTC) - timedelta(minutes=1), ready)))
    if not waits:
        up(made)
        return
    with pytest.raises(DevclusterError, match="not Ready after 0 s: pod p"):
        up(made)


def test_down_stops_the_nodes_and_purge_deletes_them(made: KindCluster, docker: StandIn, kind: StandIn) -> None:
    made.down()
    assert docker.calls("stop") == [["stop", *NODES]]
    assert kind.calls() == []
    made.down(purge=True)
    assert [call[:2] for call in kind.calls()] == [["delete", "cluster"]]
    assert not made.folder.exists()


def test_what_pods_left_in_the_shared_folder_is_deleted_by_a_container(made: KindCluster, docker: StandIn) -> None:
    (made.folder / "shared" / "checkpoint").touch()
    made.down(purge=True)
    (call,) = docker.calls("run")
    assert [*call[-5:]] == [KINDS_OWN, "/shared", "-mindepth", "1", "-delete"]
    assert f"{made.folder}/shared:/shared" in call


def test_images_go_to_the_workers_that_lack_them(made: KindCluster, docker: StandIn, kind: StandIn, tmp_path: Path) -> None:
    docker.says("sha256:1", 0, "image", "inspect")
    docker.says("docker.io/library/x:dev", 0, "exec", "dev-worker", "ctr", "--namespace", "k8s.io", "images", "ls")
    load(made, [Recipe("x:dev", tmp_path / "Dockerfile", tmp_path)], Progress(2, quiet=True))
    assert docker.calls("build")[0][:3] == ["build", "--tag", "x:dev"]
    assert kind.calls() == [["load", "docker-image", "x:dev", "--nodes", "dev-worker2", "--name", "dev"]]
    (noted,) = [call for call in docker.calls("exec") if "label" in call]
    assert noted[1] == "dev-worker2"
    assert noted[-2:] == ["docker.io/library/x:dev", "spark-drain.devcluster/copy-of=sha256:1"]


def test_a_cluster_that_has_not_come_up_has_neither_images_nor_a_kubeconfig(cluster: KindCluster) -> None:
    (cluster.folder / "provider").write_text("kind")
    for ask in (lambda: cluster.load("x:dev"), lambda: clusters.kubeconfig("dev")):
        with pytest.raises(DevclusterError, match="devcluster up --name dev"):
            ask()


@pytest.mark.usefixtures("impatient")
def test_what_nodes_said_before_the_engine_was_started_does_not_count(made: KindCluster, docker: StandIn, kubectl: StandIn) -> None:
    """Each node has its own start: what the others have said before holds."""
    started(docker, *(datetime(year, 1, 1, tzinfo=UTC) for year in (2026, 2030, 2026)))
    nodes_say(kubectl, datetime(2029, 1, 1, tzinfo=UTC))
    with pytest.raises(DevclusterError, match=r"not Ready after 0 s: dev-worker\. "):
        up(made)


def test_nodes_that_an_engine_stops_before_they_are_asked_are_started_again(
    made: KindCluster, docker: StandIn, kind: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker.says(listed("exited"), 0, "ps")
    export, refusals = made._export_kubeconfig, iter(range(2))

    def refuse_at_first() -> None:
        if next(refusals, None) is not None:
            raise DevclusterError("container is not running")
        export()

    monkeypatch.setattr(made, "_export_kubeconfig", refuse_at_first)
    up(made)
    assert docker.calls("start") == [["start", *NODES]] * 3


def test_a_node_that_is_gone_is_missed(made: KindCluster, docker: StandIn) -> None:
    docker.says("\n".join(listed().splitlines()[:2]), 0, "ps")
    assert not made.is_up()
    with pytest.raises(DevclusterError, match="of 3 nodes there are only dev-control-plane, dev-worker: begin anew"):
        up(made)


def test_images_that_all_workers_have_are_not_loaded_again(made: KindCluster, docker: StandIn, kind: StandIn, tmp_path: Path) -> None:
    docker.says("sha256:1", 0, "image", "inspect")
    docker.says("docker.io/library/x:dev", 0, "exec")
    made.load("x:dev")
    assert kind.calls() == []
    assert {call[-1] for call in docker.calls("exec")} == {
        'name=="docker.io/library/x:dev",labels."spark-drain.devcluster/copy-of"=="sha256:1"'
    }


def test_one_cluster_that_cannot_be_ended_does_not_keep_the_others_up(
    made: KindCluster, docker: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, provider in (("dev", "kind"), ("other", "control-plane")):
        cluster_dir(name).mkdir(exist_ok=True)
        (cluster_dir(name) / "provider").write_text(provider)
    docker.says("permission denied", 1, "ps")
    monkeypatch.setattr("sys.argv", ["devcluster", "down", "--all", "--purge"])
    assert main() == 1
    assert "cluster 'dev': `docker ps" in capsys.readouterr().err
    assert cluster_dir("dev").exists()
    assert not cluster_dir("other").exists()
