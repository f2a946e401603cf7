"""``python -m tools.prepare [PYTEST ARGUMENTS]``: build what the chosen tests' fixtures would otherwise build under a time limit."""

import contextlib
import io
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial

import pytest

from devcluster import clusters, demo_dependencies, gobuild
from devcluster.errors import DevclusterError
from devcluster.images import loading
from devcluster.images.recipes import EXAMPLE, EXAMPLE_S3, OPERATOR, RECIPES, S3, SPARK_OPERATOR
from devcluster.progress import Progress
from tools import jars, spark_java, sparks, table_formats
from tools.phases import phase
from tools.prerequisites import OTHER_CLUSTER

Step = tuple[str, Callable[[], object]]

# Suites that run these programs without being marked.
_PROGRAMS = ("tests/devcluster/", "tests/chart/", "tests/crds/")
_GITOPS = ("tests/gitops/", "tests/e2e/test_upgrade")
_SPARKS = "tests/versions/"
_JARS = "tests/semantics/"
_TABLES = "tests/sinks/"
_GCS = "tests/gcs/"
_S3 = "tests/s3/"
_S3_PODS = "tests/e2e/test_s3"
_FOR_PODS = (gobuild.CONTAINERD, gobuild.COREDNS, gobuild.PAUSE, gobuild.SPARK_OPERATOR)


@dataclass(frozen=True)
class Plan:
    """What is to be built.

    Parameters
    ----------
    compiled : list of Step
        Go programs: each takes all processors.
    fetched : list of Step
        What spends its time on downloads, archives and one processor; done beside the former.
    last : list of Step
        What needs both.
    """

    compiled: list[Step] = field(default_factory=list)
    fetched: list[Step] = field(default_factory=list)
    last: list[Step] = field(default_factory=list)

    def steps(self) -> list[Step]:
        """Return all of them."""
        return [*self.compiled, *self.fetched, *self.last]


class _Chosen:
    """A pytest plugin that notes what is collected."""

    def __init__(self) -> None:
        self.needs: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            self.needs |= {mark.name for mark in item.iter_markers() if mark.name in {"apiserver", "cluster", "spark"}}
            self.needs |= {"programs"} if item.nodeid.startswith(_PROGRAMS) else set()
            self.needs |= {"gitops"} if item.nodeid.startswith(_GITOPS) else set()
            self.needs |= {"sparks"} if item.nodeid.startswith(_SPARKS) else set()
            self.needs |= {"jars"} if item.nodeid.startswith(_JARS) else set()
            self.needs |= {"tables"} if item.nodeid.startswith(_TABLES) else set()
            self.needs |= {"gcs", "jars"} if item.nodeid.startswith(_GCS) else set()
            self.needs |= {"jars", "s3"} if item.nodeid.startswith(_S3) else set()
            self.needs |= {"s3", "s3 pods"} if item.nodeid.startswith(_S3_PODS) else set()


def needs(arguments: Sequence[str]) -> set[str]:
    """Return which of the needs that `plan` knows the tests have that these arguments choose."""
    chosen = _Chosen()
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["--collect-only", *arguments], plugins=[chosen])  # what is wrong with the arguments, the real run will say
    return chosen.needs


def _compile(module: gobuild.GoModule) -> Step:
    return f"building {module.folder} from source, once per version", partial(gobuild.build, module)


def plan(wanted: set[str], *, own_cluster: bool, docker: bool) -> Plan:
    """Return what is to be built and is not there yet; images are always built, since a cached build takes a second.

    Parameters
    ----------
    wanted : set of str
        Some of ``apiserver``, ``cluster``, ``gcs``, ``gitops``, ``jars``, ``programs``, ``s3``, ``s3 pods``, ``spark``, ``sparks`` and
        ``tables``.
    own_cluster : bool
        The cluster is devcluster's, not one that the environment names.
    docker : bool
        A Docker engine provides it.
    """
    modules = [gobuild.KUBE, gobuild.HELM, gobuild.KIND] if wanted - {"gcs", "gitops", "jars", "s3", "spark", "sparks", "tables"} else []
    modules += [gobuild.GITOPS] if "gitops" in wanted else []
    modules += [gobuild.GCS] if "gcs" in wanted else []
    modules += [gobuild.S3] if "s3" in wanted else []
    images: dict[str, Step] = {}
    if "cluster" in wanted and own_cluster:
        modules += [] if docker else _FOR_PODS
        wanted_images = [OPERATOR, EXAMPLE, *demo_dependencies.images("kind" if docker else "embedded")]
        wanted_images += [EXAMPLE_S3, S3] if "s3 pods" in wanted else []
        images = {name: (f"building image {name}", partial(loading.build, RECIPES[name], docker=docker)) for name in wanted_images}
    releases = {*(sparks.RELEASES if "sparks" in wanted else ()), *(table_formats.RELEASES.values() if "tables" in wanted else ())}
    missing = [release for release in sparks.RELEASES if release in releases and not sparks.is_installed(release)]
    installs: list[Step] = [(f"installing Spark {release}, once per machine", partial(sparks.install, release)) for release in missing]
    if "jars" in wanted:
        installs.append(("fetching jars of Kafka, HDFS, S3A and GCS, once per machine", jars.fetch))
    if "tables" in wanted:
        installs.append(("fetching jars of Delta, Iceberg and Hudi, once per machine", table_formats.fetch))
    if "spark" in wanted and not spark_java.is_archived():
        installs.append(("archiving Spark's classes, once per virtual environment", spark_java.make_archive))
    last = [images.pop(name) for name in (SPARK_OPERATOR, S3) if name in images]
    return Plan([_compile(module) for module in modules if not gobuild.is_built(module)], [*installs, *images.values()], last)


def carry_out(plan: Plan, progress: Progress) -> None:
    """Do all of it; the first that fails ends the rest where it is."""
    failed = threading.Event()

    def one_by_one(steps: list[Step]) -> None:
        for text, build in steps:
            if failed.is_set():
                return
            with phase(text.partition(",")[0]), progress.step(text):
                build()

    with ThreadPoolExecutor() as pool:
        try:
            for done in as_completed([pool.submit(one_by_one, steps) for steps in (plan.compiled, plan.fetched)]):
                done.result()
        except BaseException:
            failed.set()
            raise
    one_by_one(plan.last)


def main(arguments: Sequence[str]) -> int:
    """Build what is missing; each build is cached, so an interrupted one costs only itself."""
    todo = plan(
        needs(arguments), own_cluster=not os.environ.get(OTHER_CLUSTER), docker=clusters.chosen_for(clusters.DEFAULT_NAME) == "kind"
    )
    try:
        carry_out(todo, Progress(len(todo.steps())))
    except DevclusterError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: the next run goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
