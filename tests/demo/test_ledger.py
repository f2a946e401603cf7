import json
from collections import Counter

import pytest

from demo.ledger import Ledger, outputs

MORNING, NOON = "2013-01-01T06:00", "2013-01-01T12:00"
INPUT = Counter({("UA", MORNING): 3, ("UA", NOON): 2, ("AA", MORNING): 1})


def record(place: int, version: str, carrier: str, window: str, flights: int, *, key: str = "k", partition: int = 0) -> str:
    value = {"version": version, "carrier": carrier, "windowStart": f"{window}:00.000Z", "flights": flights}
    return json.dumps({"partition": partition, "offset": place, "key": key, "value": value})


EXACT = [
    record(0, "v1", "UA", MORNING, 3),
    record(1, "v1", "UA", NOON, 1),
    record(2, "v2", "UA", NOON, 1),
    record(3, "v2", "AA", MORNING, 1),
]


def test_a_window_that_both_versions_have_parts_of_is_exact() -> None:
    ledger = Ledger(INPUT, outputs(EXACT, last_per_key=False))
    assert ledger.exact
    assert ledger.line() == "ledger: records=6 lost=0 doubled=0"
    assert "differs" not in ledger.table()


@pytest.mark.parametrize(
    ("dump", "lost", "doubled"),
    [
        (EXACT[:3], 1, 0),
        ([*EXACT, record(4, "v2", "UA", NOON, 1)], 0, 1),
        ([*EXACT, record(4, "v2", "XX", NOON, 5)], 0, 5),
        # one too few in one window and one too many in another: right per carrier, wrong all the same
        ([*EXACT[:1], record(1, "v1", "UA", NOON, 0), *EXACT[2:], record(4, "v2", "UA", MORNING, 1)], 1, 1),
        ([], 6, 0),
    ],
)
def test_what_is_not_exact_is_counted(dump: list[str], lost: int, doubled: int) -> None:
    ledger = Ledger(INPUT, outputs(dump, last_per_key=False))
    assert (ledger.lost, ledger.doubled, ledger.exact) == (lost, doubled, False)


def test_records_with_equal_content_are_never_taken_for_one() -> None:
    (output,) = outputs([record(0, "v1", "UA", NOON, 2), record(0, "v1", "UA", NOON, 2, partition=1)], last_per_key=False)
    assert (output.flights["UA", NOON], output.rows) == (4, 2)


def test_of_an_idempotent_sink_the_last_record_of_a_key_counts() -> None:
    dump = [record(0, "v1", "UA", NOON, 9, key="v1/7/UA"), record(1, "v1", "UA", NOON, 2, key="v1/7/UA")]
    (output,) = outputs([*dump, record(2, "v1", "UA", NOON, 1, key="v1/8/UA")], last_per_key=True)
    assert output.flights["UA", NOON] == 3


def test_a_carrier_that_differs_is_marked() -> None:
    table = Ledger(INPUT, outputs(EXACT[:3], last_per_key=False)).table().splitlines()
    assert [line.split()[0] for line in table if "differs" in line] == ["AA"]
