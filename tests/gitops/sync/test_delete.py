"""An application with its resources is deleted: the PreDelete hook of docs/gitops-upgrade.md."""

import pytest
from spark_drain_store import DrainState

from tests.gitops.sync import recipe
from tests.gitops.sync.conftest import GitOps
from tests.support.waiting import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(600)]

IMAGE = "example/pipeline:1"


def remaining(gitops: GitOps) -> list[str]:
    path = f"/apis/sparkoperator.k8s.io/v1beta2/namespaces/{gitops.world.namespace}/sparkapplications"
    return [item["metadata"]["name"] for item in gitops.world.client.request("GET", path)["items"]]


def test_a_sync_does_not_create_the_hook(gitops: GitOps) -> None:
    gitops.first_version(recipe.application(IMAGE), recipe.hook("PreDelete"))
    assert gitops.drains == []


def test_an_application_is_drained_before_it_is_deleted(gitops: GitOps) -> None:
    agent = gitops.first_version(recipe.application(IMAGE), recipe.hook("PreSync"), recipe.hook("PreDelete"))
    deletion = gitops.argo.start(delete=True)
    drain_id = agent.await_notification().drain_id
    assert remaining(gitops) == [recipe.NAME]
    with_drain = gitops.world.drain(recipe.hook("PreDelete")["metadata"]["name"])
    assert with_drain["metadata"]["uid"] == drain_id
    outcome = gitops.drained(deletion, agent)
    assert (outcome.phase, remaining(gitops)) == ("Succeeded", [])


def test_a_drain_that_fails_holds_the_deletion(gitops: GitOps) -> None:
    agent = gitops.first_version(recipe.application(IMAGE), recipe.hook("PreDelete"))
    pods = gitops.pods
    outcome = gitops.ended(gitops.argo.start(delete=True), agent, DrainState.FAILED, "BatchStillRunning", "batch 41 did not end")
    assert outcome.phase == "Failed", outcome
    assert "batch 41 did not end" in outcome.of("PipelineDrain")["message"], outcome
    assert (remaining(gitops), gitops.spec["suspend"], gitops.pods) == ([recipe.NAME], False, pods)
    eventually(lambda: gitops.drains == [], "the hook is deleted for the next try")


def test_a_drain_of_an_earlier_deletion_is_not_taken_for_a_new_one(gitops: GitOps) -> None:
    """A deletion that leaves the resources drains as well; the application may be synchronized, and deleted, again."""
    agent = gitops.first_version(recipe.application(IMAGE), recipe.hook("PreDelete"))
    assert gitops.drained(gitops.argo.start("--orphan", delete=True), agent).phase == "Succeeded"
    assert remaining(gitops) == [recipe.NAME]
    assert gitops.argo.sync().phase == "Succeeded"
    again = gitops.world.agent("spark-two", gitops.application.start("spark-two"))
    outcome = gitops.drained(gitops.argo.start(delete=True), again)
    assert (outcome.phase, remaining(gitops)) == ("Succeeded", [])


def test_a_deletion_waits_for_approval(gitops: GitOps) -> None:
    hook = recipe.hook("PreDelete", execution="AfterApproval")
    agent = gitops.first_version(recipe.application(IMAGE), hook)
    deletion = gitops.argo.start("--background", delete=True, seconds=15)
    agent.report(agent.await_notification().drain_id, DrainState.ACKNOWLEDGED, reason="AwaitingApproval")
    gitops.world.await_phase("AwaitingApproval", hook["metadata"]["name"])
    deletion.outcome()
    assert remaining(gitops) == [recipe.NAME]
