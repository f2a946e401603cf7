"""The schemas of state that Spark has stored, with which it compares those that a batch is planned with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from spark_drain_agent.checkpoint.files import CheckpointFiles

__all__ = ["compared_but_for_nulls", "name_schemas_in_place", "schemas_after"]

_SCHEMA = "/_metadata/schema"
_METADATA = re.compile(r"/_metadata/v2/(?P<batch>\d+)$")
_OTHER_SCHEMA = re.compile(r"/_stateSchema/.*/(?P<batch>\d+)_[^/]*$")
_NEVER_NULL = re.compile(rb'("(?:nullable|containsNull|valueContainsNull)":)false')
_MAY_BE_NULL = rb"\1true "
"""As long as what it replaces: the file says how long its schemas are (`StateSchemaCompatibilityChecker`)."""


@contextmanager
def compared_but_for_nulls(files: CheckpointFiles, work: str) -> Iterator[None]:
    """Have Spark meanwhile not refuse columns that may be null in place of ones that may not.

    What may be null is found by the optimizer, and depends on which sources have input: a constant over an empty relation is calculated
    before it is looked at, and a union is planned without those of its parts that have none (`PropagateEmptyRelation`).

    Parameters
    ----------
    files
        Of the checkpoint.
    work
        Name of its work copy.

    Notes
    -----
    The schemas of transformWithState stay as they are: Spark takes one that differs for an earlier version, and stores another beside it.
    """
    stored = {name: files.read_bytes(name) or b"" for name in files.below(f"{work}/state") if name.endswith(_SCHEMA)}
    changed = {name: content for name, content in stored.items() if _NEVER_NULL.search(content)}
    for name, content in changed.items():
        files.write_bytes(name, _NEVER_NULL.sub(_MAY_BE_NULL, content))
    try:
        yield
    finally:
        for name, content in changed.items():
            files.write_bytes(name, content)


def name_schemas_in_place(files: CheckpointFiles, work: str) -> None:
    """Have the metadata of state that leaves a work copy name its schemas where they will be; safe to repeat.

    That of transformWithState names them by their whole path (`OperatorStateMetadataV2`), and a version that has other variables stores
    another schema in its first batch, which may be the flush.

    Parameters
    ----------
    files
        Of the checkpoint.
    work
        Name of its work copy.
    """
    there, in_place = f"/{work}/state/", "/state/"
    for name in files.below(f"{work}/state"):
        if _METADATA.search(name) and there in (text := files.read(name) or ""):
            files.write(name, text.replace(there, in_place))


def schemas_after(names: Iterable[str], batch_id: int) -> list[str]:
    """Return those of the names of files below the folder of the state in which batches after another one have stored schemas.

    Those of transformWithState, and the metadata that names them.
    """
    found = {name: _METADATA.search(name) or _OTHER_SCHEMA.search(name) for name in names}
    return [name for name, of_batch in found.items() if of_batch is not None and int(of_batch["batch"]) > batch_id]
