"""What the sources of a logical plan were given to read with, which its text does not show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from spark_drain_agent.spark_internals.errors import JavaError, interrupted
from spark_drain_agent.spark_internals.redaction import redacted_place
from spark_drain_agent.spark_internals.run_texts import is_secret, without_fetch_ids
from spark_drain_agent.spark_internals.trees import items, pairs

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["counted_options", "names_given", "options_of"]

_OF_ONE_RUN = re.compile(
    r"(?i)starting.*|(max|min)\w*PerTrigger|minPartitions|kafka\.(group|client)\.id|groupIdPrefix|checkpointLocation|queryName"
)
"""Options that a checkpoint overrides, that set the pace, or that name the reader or the query: what it computes depends on none."""


def options_of(internals: SparkInternals, name: str, leaf: Any) -> Iterator[str]:
    """Yield the schema, the options and the paths of a relation that is a leaf of a plan, by its node's name."""
    if name == "StreamingRelation":
        source = leaf.dataSource()
        yield f"{source.className()} {source.userSpecifiedSchema().toString()} {counted_options(pairs(source.options()))}"
    elif name == "StreamingRelationV2":
        yield counted_options(_entries(leaf.extraOptions()))
    elif name == "DataSourceV2Relation":
        yield counted_options(_entries(leaf.options()))
    elif name == "LogicalRelation" and str(leaf.relation().getClass().getSimpleName()) == "HadoopFsRelation":
        relation = leaf.relation()
        folder = internals.jvm.java.lang.System.getProperty("user.dir")
        paths = str(relation.location().rootPaths().mkString("\n")).replace(f"file:{folder}/", "")
        yield f"{without_fetch_ids(paths)!r} {counted_options(pairs(relation.options()))}"


def names_given(plan: Any) -> list[str]:
    """Return the names that the application has given the sources of a plan that are of the older kind, as Spark's for files is."""
    leaves = [leaf for leaf in items(plan.collectLeaves()) if str(leaf.nodeName()) == "StreamingRelation"]
    try:
        found = [leaf.sourceIdentifyingName().nameOpt() for leaf in leaves]
    except JavaError as error:  # before Spark 4.2
        if interrupted(error):
            raise
        return []
    return [str(name.get()) for name in found if name.isDefined()]


def _entries(options: Any) -> Iterator[tuple[str, str]]:
    given = options.asCaseSensitiveMap()
    return ((str(key), str(given[key])) for key in given)


def counted_options(options: Iterable[tuple[str, str]]) -> str:
    """Return options without credentials, and without those of `_OF_ONE_RUN`."""
    return str(
        sorted(
            (key.lower(), redacted_place(without_fetch_ids(value)))
            for key, value in options
            if not (_OF_ONE_RUN.fullmatch(key) or is_secret(key))
        )
    )
