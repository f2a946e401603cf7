"""What `make test` builds before the tests: as much as the chosen ones need, and no more."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from devcluster import gobuild
from devcluster.errors import DevclusterError
from devcluster.progress import Progress
from tests.workshop.repository import ROOT
from tools import prepare, spark_java, sparks

POD_TEST = """
import pytest

@pytest.mark.cluster
def test_pod(): ...

@pytest.mark.apiserver
def test_object(): ...

def test_number(): ...
"""


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [
        ([], ["apiserver", "cluster"]),
        (["-m", "not cluster"], ["apiserver"]),
        (["-k", "number"], []),
        (["--no-such-option"], []),
    ],
    ids=str,
)
def test_the_chosen_tests_decide(tmp_path: Path, arguments: list[str], needs: list[str]) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    cluster\n    apiserver\n")
    (tmp_path / "test_pods.py").write_text(POD_TEST)
    ask = "import sys; from tools.prepare import needs; print(sorted(needs(sys.argv[1:])))"
    command = [sys.executable, "-c", ask, "-p", "no:cacheprovider", *arguments]
    # The options of the run that this test is part of are not those of the run that it asks about.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{needs}\n"


@pytest.mark.parametrize(
    ("wanted", "own_cluster", "docker", "words"),
    [
        (set(), True, False, []),
        ({"programs"}, True, False, ["kube", "helm", "kind"]),
        ({"sparks"}, True, False, ["Spark"]),
        ({"spark"}, True, False, ["Spark's"]),
        ({"jars"}, True, False, ["jars"]),
        ({"tables"}, True, False, ["Spark", "jars"]),
        ({"gitops"}, True, False, ["gitops"]),
        ({"gitops", "apiserver"}, True, False, ["kube", "helm", "kind", "gitops"]),
        ({"sparks", "programs"}, True, False, ["kube", "helm", "kind", "Spark"]),
        ({"apiserver"}, True, True, ["kube", "helm", "kind"]),
        ({"cluster"}, False, False, ["kube", "helm", "kind"]),
        ({"cluster"}, True, True, ["kube", "helm", "kind", "image"]),
        ({"cluster"}, True, False, ["kube", "helm", "kind", "containerd", "coredns", "pause", "spark-operator", "image"]),
    ],
)
def test_only_what_is_needed_is_built(
    monkeypatch: pytest.MonkeyPatch, wanted: set[str], own_cluster: bool, docker: bool, words: list[str]
) -> None:
    monkeypatch.setattr(gobuild, "is_built", lambda _: False)
    monkeypatch.setattr(sparks, "is_installed", lambda _: False)
    monkeypatch.setattr(spark_java, "is_archived", lambda: False)
    texts = [text.split()[1] for text, _ in prepare.plan(wanted, own_cluster=own_cluster, docker=docker).steps()]
    assert list(dict.fromkeys(texts)) == words
    monkeypatch.setattr(gobuild, "is_built", lambda _: True)
    monkeypatch.setattr(sparks, "is_installed", lambda _: True)
    monkeypatch.setattr(spark_java, "is_archived", lambda: True)
    left = [text.split()[1] for text, _ in prepare.plan(wanted, own_cluster=own_cluster, docker=docker).steps()]
    assert set(left) <= {"image", "jars"}


@pytest.mark.parametrize(
    ("wanted", "docker", "more"),
    [
        ({"cluster"}, True, set()),
        ({"cluster"}, False, {"ghcr.io/kubeflow/spark-operator/controller:2.5.2"}),
        ({"cluster", "s3", "s3 pods"}, True, {"spark-drain-example-s3:dev", "devcluster-s3:1.8.0"}),
    ],
)
def test_only_images_that_the_cluster_loads_are_built(wanted: set[str], docker: bool, more: set[str]) -> None:
    texts = [text for text, _ in prepare.plan(wanted, own_cluster=True, docker=docker).steps()]
    images = {text.removeprefix("building image ") for text in texts if text.startswith("building image ")}
    assert images == {"spark-drain-operator:dev", "spark-drain-example:dev", "devcluster-kafka:4.1.0"} | more


def test_downloads_go_on_beside_the_compiler_and_what_needs_both_comes_last() -> None:
    fetching = threading.Event()
    done: list[object] = []
    plan = prepare.Plan(
        compiled=[("compiling", lambda: done.append(fetching.wait(60)))],
        fetched=[("fetching", fetching.set), ("unpacking", lambda: None)],
        last=[("both", lambda: done.append("both"))],
    )
    prepare.carry_out(plan, Progress(4, quiet=True))
    assert done == [True, "both"]


def test_a_failure_is_the_end() -> None:
    begun: list[str] = []

    def fail() -> None:
        raise DevclusterError("no space")

    plan = prepare.Plan(
        compiled=[("compiling", fail), ("linking", lambda: begun.append("linking"))], last=[("both", lambda: begun.append("both"))]
    )
    with pytest.raises(DevclusterError, match="no space"):
        prepare.carry_out(plan, Progress(3, quiet=True))
    assert begun == []
