"""Which version a driver is taken for, as tables."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from spark_drain_operator.applications.protocol import Application
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_operator.storage.pods import DriverPod

from tests.operator.kinds.drain.samples import application, at, driver, spec, status

APPLIED = -50
"""When the application was applied: after its driver was made, and shortly before the drain."""


def seen(known: DrainStatus, found: Application) -> DrainStatus:
    unused: Any = None
    current = DrainPass(
        cluster=unused,
        settings=unused,
        body={"metadata": {"namespace": "n", "name": "drain", "uid": "mine"}},
        spec=spec(),
        status=known,
        adapter=unused,
        application=found,
        messages=SimpleNamespace(notifications={}, reports={}, malformed={}),  # type: ignore[arg-type]
    )
    current.see_driver()
    return known


def made(seconds: float, run_id: str = "one", **fields: Any) -> DriverPod:
    return replace(driver(run_id), created=at(seconds), **fields)


def applied(pod: DriverPod, *, state: str = "RUNNING", time: float = APPLIED, digest: str = "digest") -> Application:
    return replace(application(state, pod), spec_changed=at(time), spec_digest=digest)


def first_look() -> DrainStatus:
    return replace(seen(status(), applied(made(-900))), drain_id="mine")


def test_a_driver_that_is_older_than_a_change_may_have_been_started_with_another_spec() -> None:
    known = first_look()
    assert (known.spec_digest, known.seen_run_id) == ("earlier", "one")
    assert known.changed_time == at(APPLIED)


@pytest.mark.parametrize(
    ("now", "found", "digest"),
    [
        (9, applied(made(-900)), "earlier"),
        (10, applied(made(-900)), "digest"),
        (10, applied(made(-900), time=5), "digest"),  # another label
        (10, applied(made(-900), time=5, digest="next"), "earlier"),
        (10, applied(made(-900, terminating=True)), "earlier"),
        (10, applied(made(-900), state="INVALIDATING"), "earlier"),
    ],
)
def test_a_change_that_ends_no_driver_means_nothing(now: float, found: Application, digest: str) -> None:
    """As that of a label: the managers of the fields do not tell it from one of the spec."""
    known = seen(replace(first_look(), now=at(now)), found)
    assert known.spec_digest == digest
    assert bool(known.changed_digest) == (digest == "earlier")


@pytest.mark.parametrize(("created", "digest", "next_run_id"), [(9, "digest", "two"), (10, "digest", ""), (10, "next", "two")])
def test_a_later_driver_is_a_next_version_s_where_its_operator_may_have_acted_on_a_change(
    created: float, digest: str, next_run_id: str
) -> None:
    """Nobody has looked in between."""
    known = seen(replace(first_look(), now=at(15)), applied(made(created, "two"), digest=digest))
    assert known.next_run_id == next_run_id
    assert (known.spec_digest, known.seen_run_id) == (("earlier", "one") if next_run_id else (digest, "two"))
