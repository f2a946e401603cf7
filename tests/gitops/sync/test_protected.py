"""A protected application: nothing but a drain, or the annotation, lets Argo CD or a hand edit end its run."""

import subprocess
from collections.abc import Iterator

import pytest

from tests.gitops.sync import recipe
from tests.gitops.sync.conftest import GitOps
from tests.support import chart
from tests.support.policies import await_protection

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(600)]

V1, V2 = "example/pipeline:1", "example/pipeline:2"
ADVICE = "Drain it first with a PipelineDrain"


@pytest.fixture
def guarded(gitops: GitOps) -> Iterator[GitOps]:
    with chart.installed(gitops.world.server, gitops.world.namespace, admissionPolicies={"protect": True}):
        await_protection(gitops.world.server, gitops.world.namespace)
        yield gitops


def edit(gitops: GitOps, patch: str) -> str:
    """Edit the application by hand; returns what kubectl says where it is refused."""
    server = gitops.world.server
    command = [server.kubectl, "-n", gitops.world.namespace, "patch", "sparkapplication", recipe.NAME, "--type=merge", "--patch", patch]
    done = subprocess.run(command, env=server.environment(), capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def test_the_recipe_works_as_it_does_without(guarded: GitOps) -> None:
    hook = recipe.hook("PreSync")
    agent = guarded.first_version(recipe.protected(V1), hook)
    guarded.repository.commit("second version", recipe.protected(V2), hook)
    outcome = guarded.drained(guarded.argo.start(), agent)
    assert outcome.phase == "Succeeded", outcome
    assert (guarded.spec["image"], guarded.spec["suspend"]) == (V2, False)


def test_a_hand_edit_and_a_sync_without_a_drain_are_refused(guarded: GitOps) -> None:
    hook = recipe.hook("PreSync")
    guarded.first_version(recipe.protected(V1), hook)
    generation = guarded.application.body()["metadata"]["generation"]

    assert ADVICE in edit(guarded, '{"spec": {"image": "by-hand"}}')
    guarded.repository.commit("second version, and the drain forgotten", recipe.protected(V2))
    forgotten = guarded.argo.sync()
    healed = guarded.argo.self_heal("SparkApplication", recipe.NAME)

    for outcome in (forgotten, healed):
        assert outcome.phase == "Failed", outcome
        assert ADVICE in outcome.of("SparkApplication")["message"], outcome
    assert guarded.application.body()["metadata"]["generation"] == generation


def test_self_heal_of_what_does_not_restart_it_is_granted(guarded: GitOps) -> None:
    guarded.first_version(recipe.protected(V1))
    assert edit(guarded, '{"metadata": {"labels": {"app.kubernetes.io/instance": "another"}}}') == ""
    assert guarded.argo.self_heal("SparkApplication", recipe.NAME).phase == "Succeeded"
    assert guarded.application.body()["metadata"]["labels"]["app.kubernetes.io/instance"] == "gitops-sync"


def test_a_deletion_without_a_drain_is_refused_and_one_with_it_is_not(guarded: GitOps) -> None:
    agent = guarded.first_version(recipe.protected(V1))
    outcome = guarded.argo.start(delete=True).outcome()
    assert outcome.phase == "Failed", outcome
    assert ADVICE in outcome.message

    guarded.repository.commit("a drain before the end", recipe.protected(V1), recipe.hook("PreDelete"))
    assert guarded.drained(guarded.argo.start(delete=True), agent).phase == "Succeeded"
