"""The folder of a query below the one that a request names: whatever the query is called, filesystems take it."""

from __future__ import annotations

import pytest
from spark_drain_agent.planning.output_paths import below, check_names, query_folder
from spark_drain_agent.planning.plan import PlanRejectedError
from spark_drain_store import DrainOptions


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("file:/out/a", True),
        ("file:/out/a/b", True),
        ("file:/out", False),
        ("file:/out/", False),
        ("file:/out-too", False),
        ("file:/out/../secret", False),
        ("s3a://out/a", False),
        ("s3a://bucket", False),
        ("s3a://bucket/a", True),
    ],
)
def test_a_path_is_in_an_allowed_folder_and_not_that_folder(path: str, allowed: bool) -> None:
    assert below(path, ["file:/out", "s3a://bucket/"]) is allowed


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("orders", "orders"),
        ("a/b c", "a%2Fb%20c"),
        ("", "query-id"),
        (".", "%2E"),
        ("..", "%2E."),
        ("_hidden", "%5Fhidden"),
    ],
)
def test_a_name_that_no_folder_can_have_is_encoded(name: str, folder: str) -> None:
    assert query_folder("file:/out/", name, "id") == f"file:/out/{folder}"


def test_long_names_are_cut_and_stay_apart() -> None:
    folders = [query_folder("file:/out", "\u6ce8" * 40 + last, "id").rpartition("/")[2] for last in "ab"]
    assert len({*folders}) == 2
    assert all(len(folder) <= 255 for folder in folders)


@pytest.mark.parametrize("options", [DrainOptions(side_output_path="file:/a"), DrainOptions(state_export_path="file:/a")])
def test_queries_of_one_name_do_not_share_a_folder(options: DrainOptions) -> None:
    check_names(options, ["a", "b", "", ""])
    check_names(DrainOptions(), ["a", "a"])
    with pytest.raises(PlanRejectedError, match="several queries are named 'a'"):
        check_names(options, ["a", "b", "a"])
