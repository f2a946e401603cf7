"""Where a sink's path leads."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.sink_code import sink_place
from spark_drain_agent.spark_internals.writer import CapturedWriter

from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("source", "path", "place"),
    [
        ("parquet", None, ""),
        ("delta", "/out/table", "file:/out/table"),
        ("delta", "file:///out/table", "file:/out/table"),
        ("Delta", "file:/out/table/", "file:/out/table"),
        ("delta", "out/table", "file:{cwd}/out/table"),
        ("Delta", "table", "file:{cwd}/table"),
        ("iceberg", "events", "`spark_catalog`.`default`.`events`"),
        ("iceberg", "spark_catalog.shop.events", "`spark_catalog`.`shop`.`events`"),
        ("iceberg", "s3://bucket//events/", "s3://bucket/events"),
        ("sql", "jdbc:postgresql://db.example.com:5432/shop", "jdbc:postgresql://db.example.com:5432/shop"),
        ("sql", "db.example.com:5432/shop", "db.example.com:5432/shop"),
        ("sql", "db.example.com:5432", "db.example.com:5432"),
        ("sql", "a//b c?d=%zz#e", "a//b c?d=%zz#e"),
        ("sql", "orders", "orders"),
        ("sql", "sql://me:p@ss@db/shop", "sql://me:*********(redacted)@db/shop"),
        ("delta", "/my data/secret=1/a", "file:/my data/secret=1/a"),
        ("delta", "s3a://key:word@bucket/secret=1", "s3a://key:*********(redacted)@bucket/secret=1"),
    ],
)
def test_where_a_path_leads(warm: Warm, source: str, path: str | None, place: str) -> None:
    captured = cast(CapturedWriter, SimpleNamespace(source=source, path=None, option={"path": path}.get))
    assert sink_place(SparkInternals(warm.session), captured) == place.format(cwd=Path.cwd())
