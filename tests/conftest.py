"""Order of the suites, and where their time goes."""

from collections import defaultdict

import pytest
from hypothesis import HealthCheck, settings

from tools.phases import recorded

pytest_plugins = ["tests.support.apiserver"]

# How long an example takes says nothing on a machine that also runs Spark and a cluster.
settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")

# Cheap first: a wrong message format shows in seconds, not after the cluster is up.
_LEVELS = ("unit", "spark", "apiserver", "cluster")


def _level(item: pytest.Item) -> str:
    return next((level for level in reversed(_LEVELS) if item.get_closest_marker(level)), _LEVELS[0])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _LEVELS.index(_level(item)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    spent: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                spent[f"tests: {'/'.join(report.nodeid.partition('::')[0].split('/')[1:-1]) or 'root'}"] += report.duration
    terminalreporter.section("where the time goes")
    for name, seconds in [*recorded(), *sorted(spent.items(), key=lambda item: -item[1])]:
        terminalreporter.write_line(f"{seconds:8.1f}s  {name}")
