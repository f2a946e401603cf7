"""The Job that undoes a drain, by the commands at the head of its manifest."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.apiserver import ROOT, ApiServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver

MANIFESTS = ROOT / "examples/flights/manifests"
START, WAIT, _ = (line[1:] for line in (MANIFESTS / "resume.yaml").read_text().splitlines() if line.startswith("#   kubectl"))


@pytest.fixture
def shell(api_server: ApiServer) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    environment = api_server.environment()
    environment["PATH"] = f"{Path(api_server.kubectl).parent}:{environment['PATH']}"
    api_server.run_kubectl("create", "serviceaccount", "flights")
    yield lambda command: subprocess.Popen(["sh", "-c", command], env=environment, cwd=MANIFESTS)
    api_server.run_kubectl("delete", "job/flights-resume", "serviceaccount/flights")


def test_a_job_that_is_refused_is_not_waited_for_and_can_be_tried_again(
    api_server: ApiServer, shell: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    """As the first one is where the next version has run batches."""
    assert shell(START).wait(30) == 0
    selector = ("-l", "batch.kubernetes.io/job-name=flights-resume", "-o", "name")
    pod = eventually(lambda: api_server.run_kubectl("get", "pods", *selector).strip(), "the pod")
    waiting = shell(WAIT)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(3)
    api_server.run_kubectl("patch", pod, "--subresource=status", "--type=merge", '--patch={"status": {"phase": "Failed"}}')
    assert waiting.wait(30) == 0
    assert shell(START).wait(30) == 0
