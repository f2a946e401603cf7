"""What somebody may have written into a message: texts, numbers and times of any kind, and objects that are nearly right."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

__all__ = ["NUMBERS", "SECONDS", "TEXT", "TIMES", "objects"]

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40) | st.sampled_from(
    [
        "",
        "Drained",
        "x" * 5000,
        "²",
        "1-99999999999999999999",
        "a,b",
        "../..?watch=true",
        "\U0001f600" * 400,
        "-1",
        "NaN",
        "Stalled now!",
        "9" * 5000,
    ]
)
NUMBERS = st.integers() | st.sampled_from([2**31, 2**40, 2**63, 2**64, -1])
SECONDS = NUMBERS | st.floats() | st.sampled_from([1e999, float("nan")])
ANYTHING = st.recursive(
    st.none() | st.booleans() | SECONDS | TEXT, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)
TIMES = st.sampled_from(["2030-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+14:00", "soon"])


def objects(fields: dict[str, SearchStrategy[Any]]) -> SearchStrategy[dict[str, Any]]:
    """Return objects whose fields are of their types, but for one that may be of another or missing."""
    right = st.fixed_dictionaries(fields)
    names = st.sampled_from(sorted(fields))
    wrong = st.builds(lambda found, name, value: {**found, name: value}, right, names, ANYTHING)
    less = st.builds(lambda found, name: {key: value for key, value in found.items() if key != name}, right, names)
    return st.one_of(right, right, right, wrong, less)
