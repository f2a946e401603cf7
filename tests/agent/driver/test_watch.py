"""What is asked of an application is seen, whatever a look at it meets."""

import pytest
from spark_drain_agent.driver.watch import Watch
from spark_drain_store import Channel, Snapshot, StoreError

from tests.support.waiting import eventually


def test_a_defect_in_the_first_look_harms_neither_the_application_nor_later_looks() -> None:
    channel, seen = Channel.in_memory(), []

    def consider(requests: Snapshot) -> None:
        seen.append([*requests.entries])
        if not requests.entries:
            raise RuntimeError("a defect")

    watch = Watch(channel, {"drain-v1": consider})
    watch.begin()
    try:
        channel.requests.write({"mine": "{}"})
        eventually(lambda: seen[-1] == ["mine"], what="the request is seen")
    finally:
        watch.close()


@pytest.mark.parametrize("error", [StoreError("too many open files"), RuntimeError("can't start new thread")])
@pytest.mark.parametrize("early", [True, False])
def test_a_request_whose_first_look_fails_is_looked_at_again_soon(error: Exception, early: bool) -> None:
    channel, looks = Channel.in_memory(), []

    def consider(requests: Snapshot) -> None:
        if requests.entries:
            looks.append([*requests.entries])
            if len(looks) == 1:
                raise error

    watch = Watch(channel, {"drain-v1": consider})
    if early:
        channel.requests.write({"mine": "{}"})
    watch.begin()
    try:
        channel.requests.write({"mine": "{}"})
        eventually(lambda: looks[1:] == [["mine"]], what="the second look", seconds=10)
    finally:
        watch.close()
