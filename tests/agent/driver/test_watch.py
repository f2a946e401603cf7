"""What is asked of an application is seen, whatever a look at it meets."""

from spark_drain_agent.driver.watch import Watch
from spark_drain_store import Channel, Snapshot

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
