"""A folder that Spark's file sink writes, read by hand: its log in ``_spark_metadata``, and the files that the log names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyarrow import parquet  # type: ignore[import-untyped]  # pyarrow ships no types

__all__ = ["read_parquet"]


def read_parquet(folder: Path) -> list[dict[str, Any]]:
    """Return the rows that belong to the sink's committed batches."""
    log = {path.name: path for path in (folder / "_spark_metadata").iterdir() if not path.name.startswith(".")}
    ids = {int(name.removesuffix(".compact")) for name in log}
    newest = max(int(name.removesuffix(".compact")) for name in log if name.endswith(".compact")) if any("." in name for name in log) else 0
    assert ids >= set(range(newest, max(ids) + 1)), f"the sink's log has gaps: {sorted(ids)}"
    entries = [log.get(f"{number}.compact") or log[str(number)] for number in range(newest, max(ids) + 1)]
    named = [json.loads(line)["path"] for entry in entries for line in entry.read_text().splitlines()[1:]]
    return [row for path in named for row in parquet.read_table(unquote(urlsplit(path).path), partitioning=None).to_pylist()]
