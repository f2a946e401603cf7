"""Order of the suites, which tests stay together, and where their time goes."""

from collections import defaultdict
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.own_jvm import forget_answers
from tools.phases import recorded

pytest_plugins = ["tests.support.apiserver"]

# How long an example takes says nothing on a machine that also runs Spark and a cluster.
settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")

# The operator's tests, which mostly wait, have a worker of their own for as long as they take. Beside them what is cheap comes first: a
# wrong message format shows in seconds. Then what has to stay together, because it shares a JVM or a cluster; last, for whichever worker
# is free, drivers of their own.
_ORDER = ("operator", "", "agent", "semantics", "kubernetes", "s3", "gcs", "drivers")


def _part(item: pytest.Item) -> str:
    folder = item.path.relative_to(item.config.rootpath).parts[1]
    if item.get_closest_marker("apiserver") or item.get_closest_marker("cluster"):
        return "operator" if folder == "operator" else "kubernetes"
    if not item.get_closest_marker("spark"):
        return ""
    shared = {"session", "spark"}.intersection(getattr(item, "fixturenames", ()))
    return folder if shared else "drivers"


def _leave_matrices_to_soak(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whoever names a test, or asks for the matrices, gets what was asked for."""
    if "soak" in config.option.markexpr or any("::" in argument for argument in config.args):
        return
    whole = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=whole)
    items[:] = [item for item in items if item not in whole]


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _leave_matrices_to_soak(config, items)
    items.sort(key=lambda item: _ORDER.index(_part(item)))
    for item in items:
        if (part := _part(item)) not in ("", "drivers"):
            item.add_marker(pytest.mark.xdist_group(part))


def pytest_collection_finish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        return
    for item in session.items:
        # The name is how pytest-xdist tells its scheduler. Two workers with a cluster each would end each other's.
        groups = [mark.args[0] for mark in item.iter_markers("xdist_group")]
        assert not groups or item.nodeid.endswith(f"@{groups[0]}"), f"pytest-xdist does not keep {item.nodeid} with the rest of {groups[0]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    if call.excinfo is not None and str(call.excinfo.value).startswith("Timeout"):
        forget_answers()
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    spent: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                spent[f"tests: {'/'.join(report.nodeid.partition('::')[0].split('/')[1:-1]) or 'root'}"] += report.duration
    terminalreporter.section("where the time goes")
    for name, seconds in [*recorded(), *sorted(spent.items(), key=lambda item: -item[1])]:
        terminalreporter.write_line(f"{seconds:8.1f}s  {name}")
