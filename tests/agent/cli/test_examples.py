"""Spark's own streaming examples, unmodified under the agent: none has a checkpointLocation, and a drain ends each with all it knows."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.agent.harness import Drains, Driver, eventually
from tests.support.lines import lines_served

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

COUNT = "structured_network_wordcount.py"
WINDOWS = "structured_network_wordcount_windowed.py"
TIMEOUTS = "structured_network_wordcount_session_window.py"
SESSIONS = "structured_sessionization.py"
BLOCKS = "structured_blockchain_admission_control.py"
COUNTED = {"to": 2, "be": 2, "or": 1, "not": 1, "that": 1, "is": 1, "the": 1, "question": 1}


class Example:
    """One example in the driver that runs them all, by what it prints."""

    def __init__(self, name: str, driver: Driver) -> None:
        self.name, self.driver = name, driver

    @property
    def shown(self) -> str:
        return self.driver.log.partition(f"begin {self.name}\n")[2]

    def prints(self, pattern: str) -> re.Match[str]:
        return eventually(lambda: re.search(pattern, self.shown), f"{self.name} to print {pattern}", alive=self.driver)

    def exit_code(self) -> int:
        return int(self.prints(rf"(?m)^end {self.name} (\d+)$")[1])

    def counted(self) -> list[tuple[str, int]]:
        """Return the words of the last batch, or of all, since sessions may be over by themselves before the drain."""
        batches = self.shown.partition(f"end {self.name}")[0].split("Batch:")
        of_words = re.findall(r"\| *([a-z]+) *\| *(\d+) *\|", "".join(batches) if self.name == TIMEOUTS else batches[-1])
        return sorted((word, int(count)) for word, count in of_words)


def test_examples_end_with_all_that_was_sent(tmp_path: Path) -> None:
    drains = Drains(tmp_path / "store")
    with ExitStack() as stack:
        calls = []
        for name, more in ((COUNT, ""), (WINDOWS, ",3600"), (TIMEOUTS, ""), (SESSIONS, "")):
            host, port = stack.enter_context(lines_served(["to be or not to be", "that is the question"]))
            calls.append(f"{name},{host},{port}{more}")
        driver = Driver("examples.py", tmp_path, drains.location, *calls, BLOCKS, store=None)
        stack.callback(driver.close)

        count = Example(COUNT, driver)
        count.prints(r"\| *question\|")
        drain = drains.reaches(drains.write(), "Rejected", reason="UnsupportedQuery", driver=driver)
        assert "unnamed query to console has no checkpointLocation" in drain["message"]
        assert "use checkpoint.policy 'Keep'" in drain["message"]
        drain = drains.reaches(drains.write(checkpoint__policy="Keep"), "Rejected", reason="StateWouldBeLost", driver=driver)
        assert "(Aggregate)" in drain["message"]

        for example, ready, disposition in (
            (count, r"\| *question\|", "forgotten"),
            (Example(WINDOWS, driver), r"\|question *\|", "forgotten"),
            (Example(TIMEOUTS, driver), "Batch: 3", "flushed"),
        ):
            example.prints(ready)
            drain = drains.reaches(drains.write(stateLossPolicy="Accept", checkpoint__policy="Keep"), "Drained", driver=driver)
            assert [operator["disposition"] for operator in drain["queries"][0]["operators"]] == [disposition]
            assert drain["queries"][0]["flushBatchId"] is not None
            drains.clean_up()
            assert example.exit_code() == 0
            assert example.counted() == sorted(COUNTED.items())

        assert Example(SESSIONS, driver).exit_code() == 1
        assert "AnalysisException: [STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION]" in Example(SESSIONS, driver).shown  # Spark's own answer

        Example(BLOCKS, driver).prints("Batch: 0")
        drain = drains.reaches(drains.write(checkpoint__policy="Keep"), "Drained", driver=driver)
        assert drain["queries"][0]["name"] == "admission_control_test"
        assert driver.running
