"""Where a query reads from and writes to, from its plan, its writer and its sink."""

from __future__ import annotations

from typing import Any

from spark_drain_agent.spark_internals.live_tables import LiveSink, described_table
from spark_drain_agent.spark_internals.places import Place
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.writer import CapturedWriter

__all__ = ["read_from", "written_to"]


def written_to(internals: SparkInternals, captured: CapturedWriter, sink: LiveSink) -> list[Place]:
    """Return where a query's sink writes to; nothing for sinks that only user code knows, such as foreachBatch."""
    if captured.source == "kafka":
        topic, servers = captured.option("topic"), captured.option("kafka.bootstrap.servers")
        return [Place("topic", topic, _servers(servers))] if topic else []
    names = {name.replace("`", "") for name in (sink.table, captured.table) if name}
    # What a table is started by is its path or its name: where the sink says what it is, only that counts.
    folders = {sink.location} if sink.location or sink.table else {captured.path or captured.option("path") or ""}
    return [Place("table", name) for name in sorted(names)] + _paths(internals, folders)


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
    paths = {str(source.paths().apply(index)) for index in range(source.paths().size())}
    option = source.options().get("path")
    return _paths(internals, paths | ({str(option.get())} if option.isDefined() else set()))


def _relation(internals: SparkInternals, leaf: Any) -> list[Place]:
    options = leaf.extraOptions()
    servers = _servers(options.get("kafka.bootstrap.servers"))
    if options.get("subscribePattern"):
        return [Place("topic", str(options.get("subscribePattern")), servers, pattern=True)]
    if options.get("subscribe"):
        return [Place("topic", topic.strip(), servers) for topic in str(options.get("subscribe")).split(",")]
    table, location = described_table(leaf.table())
    if leaf.identifier().isDefined() and leaf.catalog().isDefined():
        table = f"{leaf.catalog().get().name()}.{leaf.identifier().get().toString()}".replace("`", "")
        return [Place("table", table), *_paths(internals, {location})]
    return _paths(internals, {location or str(options.get("path") or "")})


def _paths(internals: SparkInternals, folders: set[str]) -> list[Place]:
    return [Place("path", internals.qualified(folder)) for folder in sorted(folders) if folder]


def _servers(option: Any) -> frozenset[str]:
    return frozenset(server.strip() for server in str(option or "").split(",") if server.strip())
