"""The recipe of docs/gitops-upgrade.md, carried out by Argo CD's own engine."""

import pytest
from spark_drain_store import DrainState

from tests.gitops.sync import recipe
from tests.gitops.sync.conftest import GitOps

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(600)]

V1, V2 = "example/pipeline:1", "example/pipeline:2"


def test_a_commit_drains_the_old_version_and_starts_the_new_one(gitops: GitOps) -> None:
    hook = recipe.hook("PreSync")
    agent = gitops.first_version(recipe.application(V1), hook)
    first = gitops.drains

    revision = gitops.repository.commit("second version", recipe.application(V2), hook)
    sync = gitops.argo.start(f"--revision={revision}")
    drain_id = agent.await_notification().drain_id
    assert drain_id not in first, "each sync is a drain of its own"
    assert gitops.spec["image"] == V1
    outcome = gitops.drained(sync, agent)

    assert (outcome.phase, outcome.of("SparkApplication")["status"]) == ("Succeeded", "Synced"), outcome
    assert (outcome.of("PipelineDrain")["hook"], outcome.of("PipelineDrain")["status"]) == ("PreSync", "Succeeded")
    assert (gitops.spec["image"], gitops.spec["suspend"]) == (V2, False)
    assert gitops.pods == [], "the old version's pods were gone before the new one was applied"


def test_the_first_sync_finds_nothing_to_drain(gitops: GitOps) -> None:
    gitops.repository.commit("first version", recipe.application(V1), recipe.hook("PreSync"))
    outcome = gitops.argo.sync()
    assert outcome.phase == "Succeeded", outcome
    assert gitops.spec["image"] == V1
    assert gitops.world.drain(recipe.hook("PreSync")["metadata"]["name"])["status"]["phase"] == "NothingToDrain"


@pytest.mark.parametrize(
    ("state", "reason", "message"),
    [
        (DrainState.REJECTED, "StateWouldBeLost", "dropDuplicates of query counts forgets its keys"),
        (DrainState.FAILED, "BatchStillRunning", "batch 41 of query counts did not end"),
    ],
)
def test_a_drain_that_does_not_succeed_ends_the_sync(gitops: GitOps, state: DrainState, reason: str, message: str) -> None:
    hook = recipe.hook("PreSync")
    agent = gitops.first_version(recipe.application(V1), hook)
    generation, pods = gitops.application.body()["metadata"]["generation"], gitops.pods

    gitops.repository.commit("second version", recipe.application(V2), hook)
    outcome = gitops.ended(gitops.argo.start(), agent, state, reason, message)

    assert outcome.phase == "Failed", outcome
    assert message in outcome.of("PipelineDrain")["message"], outcome
    assert gitops.application.body()["metadata"]["generation"] == generation
    assert (gitops.spec["image"], gitops.pods) == (V1, pods), "the old version runs as before"


def test_a_sync_after_a_failed_one_drains_again(gitops: GitOps) -> None:
    hook = recipe.hook("PreSync")
    agent = gitops.first_version(recipe.application(V1), hook)
    gitops.repository.commit("second version", recipe.application(V2), hook)
    assert gitops.ended(gitops.argo.start(), agent, DrainState.FAILED, "BatchStillRunning", "did not end").phase == "Failed"
    agent.await_no_notification()
    agent.last = None
    outcome = gitops.drained(gitops.argo.start(), agent)
    assert outcome.phase == "Succeeded", outcome
    assert gitops.spec["image"] == V2


def test_a_sync_waits_for_approval(gitops: GitOps) -> None:
    hook = recipe.hook("PreSync", execution="AfterApproval")
    agent = gitops.first_version(recipe.application(V1), hook)
    gitops.repository.commit("second version", recipe.application(V2), hook)
    sync = gitops.argo.start()
    drain_id = agent.await_notification().drain_id
    agent.report(drain_id, DrainState.ACKNOWLEDGED, reason="AwaitingApproval")
    name = hook["metadata"]["name"]
    gitops.world.await_phase("AwaitingApproval", name)
    assert sync.running
    gitops.world.patch_drain(name, spec={"approved": True})
    assert gitops.drained(sync, agent).phase == "Succeeded"


def test_a_hand_edit_while_a_drain_is_in_progress(gitops: GitOps) -> None:
    """It is another version, which is not drained in the place of the one that was: the sync ends, and the next one drains it."""
    hook = recipe.hook("PreSync")
    agent = gitops.first_version(recipe.application(V1), hook)
    gitops.repository.commit("second version", recipe.application(V2), hook)
    sync = gitops.argo.start()
    drain_id = agent.await_notification().drain_id
    agent.report(drain_id, DrainState.STOPPING)

    gitops.edit_by_hand(image="by-hand")
    agent.restarted("spark-two", gitops.application.restart("spark-two"))
    agent.await_withdrawn()
    agent.report(drain_id, DrainState.WITHDRAWN)
    assert sync.outcome().phase == "Failed"
    assert (gitops.spec["image"], gitops.spec.get("suspend", False)) == ("by-hand", False)
    assert gitops.pods

    outcome = gitops.drained(gitops.argo.start(), agent)
    assert outcome.phase == "Succeeded", outcome
    assert (gitops.spec["image"], gitops.spec["suspend"], gitops.pods) == (V2, False, [])


def test_a_hand_edit_that_resumes_what_is_being_scaled_down(gitops: GitOps) -> None:
    hook = recipe.hook("PreSync")
    agent = gitops.first_version(recipe.application(V1), hook)
    gitops.repository.commit("second version", recipe.application(V2), hook)
    sync = gitops.argo.start()
    agent.drain(agent.await_notification().drain_id)
    gitops.application.await_suspend()
    gitops.edit_by_hand(suspend=False)
    gitops.application.obey_suspend()
    outcome = sync.outcome()
    assert outcome.phase == "Succeeded", outcome
    assert (gitops.spec["image"], gitops.spec["suspend"], gitops.pods) == (V2, False, [])


def test_self_heal_makes_no_drain(gitops: GitOps) -> None:
    """Which is why an application is to be protected: a hand edit restarts it, and self-heal restarts it again."""
    gitops.first_version(recipe.application(V1), recipe.hook("PreSync"))
    drains = gitops.drains
    gitops.edit_by_hand(image="by-hand")
    outcome = gitops.argo.self_heal("SparkApplication", recipe.NAME)
    assert outcome.phase == "Succeeded", outcome
    assert [item["kind"] for item in outcome.resources] == ["SparkApplication"]
    assert (gitops.spec["image"], gitops.drains) == (V1, drains)


def test_self_heal_starts_what_was_drained_by_hand(gitops: GitOps) -> None:
    agent = gitops.first_version(recipe.application(V1))
    gitops.world.server.run_kubectl("-n", gitops.world.namespace, "apply", "-f", "-", text=str(recipe.hook("PreSync")))
    with_drain = agent.await_notification().drain_id
    agent.drain(with_drain)
    gitops.application.obey_suspend()
    gitops.world.await_phase("Drained", recipe.hook("PreSync")["metadata"]["name"])
    assert gitops.argo.self_heal("SparkApplication", recipe.NAME).phase == "Succeeded"
    assert (gitops.spec["image"], gitops.spec["suspend"]) == (V1, False)
