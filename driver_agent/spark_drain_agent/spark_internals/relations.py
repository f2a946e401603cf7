"""Where a query reads from and writes to, from its plan and its writer: known before it runs."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types

from spark_drain_agent.feeds import Place
from spark_drain_agent.spark_internals import CapturedWriter, SparkInternals

__all__ = ["read_from", "written_to"]


def written_to(internals: SparkInternals, captured: CapturedWriter) -> list[Place]:
    """Return where a query's sink writes to; nothing for sinks that only user code knows, such as foreachBatch."""
    if captured.table is not None:
        return _table(internals, captured.table)
    if captured.source == "kafka":
        topic, servers = captured.option("topic"), captured.option("kafka.bootstrap.servers")
        return [Place("topic", topic, _servers(servers))] if topic else []
    path = captured.path or captured.option("path")
    return [Place("path", internals.qualified(path))] if path else []


def read_from(internals: SparkInternals, captured: CapturedWriter) -> list[Place]:
    """Return where a query's streaming sources read from."""
    leaves = captured.dataset.queryExecution().analyzed().collectLeaves()
    found = []
    for leaf in (leaves.apply(index) for index in range(leaves.size())):
        if str(leaf.nodeName()) == "StreamingRelationV2":
            found += _relation(internals, leaf)
        elif str(leaf.nodeName()) == "StreamingRelation":
            found += _files(internals, leaf.dataSource())
    return found


def _files(internals: SparkInternals, source: Any) -> list[Place]:
    paths = [str(source.paths().apply(index)) for index in range(source.paths().size())]
    option = source.options().get("path")
    if option.isDefined():
        paths.append(str(option.get()))
    return [Place("path", internals.qualified(path)) for path in paths]


def _relation(internals: SparkInternals, leaf: Any) -> list[Place]:
    if leaf.identifier().isDefined() and leaf.catalog().isDefined():
        return [Place("table", f"{leaf.catalog().get().name()}.{leaf.identifier().get().toString()}".replace("`", ""))]
    options = leaf.extraOptions()
    servers = _servers(options.get("kafka.bootstrap.servers"))
    if options.get("subscribePattern"):
        return [Place("topic", str(options.get("subscribePattern")), servers, pattern=True)]
    if options.get("subscribe"):
        return [Place("topic", topic.strip(), servers) for topic in str(options.get("subscribe")).split(",")]
    path = options.get("path")
    return [Place("path", internals.qualified(str(path)))] if path else []


def _table(internals: SparkInternals, name: str) -> list[Place]:
    """Return a table's full name, and its folder where the session's own catalog knows it, since Spark reads it from there."""
    state = internals.session_state()
    manager = state.catalogManager()
    parts = name.replace("`", "").split(".")
    if len(parts) == 1:
        parts = [*[str(part) for part in manager.currentNamespace()], *parts]
    if len(parts) == 2:
        parts = [str(manager.currentCatalog().name()), *parts]
    found = [Place("table", ".".join(parts))]
    try:
        table = state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(name))
        found.append(Place("path", internals.qualified(str(table.location().toString()))))
    except Py4JError:  # another catalog's table, which only that catalog can locate
        pass
    return found


def _servers(option: Any) -> frozenset[str]:
    return frozenset(server.strip() for server in str(option or "").split(",") if server.strip())
