"""The state stores that a query would open, from its physical plan, and what an empty one looks like on disk.

Nothing runs for it: the plan is made as Spark makes a batch's (IncrementalExecution), and the empty store by its provider's own hands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.errors import PySparkException

from spark_drain_agent.spark_internals.errors import UnsupportedSparkError, in_words
from spark_drain_agent.spark_internals.reflection import companion, private_field
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.writer import CapturedWriter

__all__ = [
    "EMPTY_JOIN_FORMATS",
    "JOIN_FORMAT",
    "STATE_FORMAT",
    "STATE_PROVIDER",
    "EmptyStore",
    "OperatorStores",
    "empty_store",
    "late_snapshots_seconds",
    "pinned_confs",
    "planned_stores",
]

_STREAMING = "org.apache.spark.sql.execution.streaming"
_EXECUTIONS = (f"{_STREAMING}.runtime.IncrementalExecution", f"{_STREAMING}.IncrementalExecution")
_PROPAGATORS = (f"{_STREAMING}.runtime.WatermarkPropagator", f"{_STREAMING}.WatermarkPropagator")
_METADATA = (f"{_STREAMING}.checkpointing.OffsetSeqMetadata", f"{_STREAMING}.OffsetSeqMetadata")
_STATEFUL = (f"{_STREAMING}.operators.stateful.StatefulOperator", f"{_STREAMING}.StatefulOperator")
_STATE = f"{_STREAMING}.state"
_STORE_CONF = "spark.sql.streaming.stateStore"
STATE_PROVIDER = f"{_STORE_CONF}.providerClass"
"""Conf with the class that keeps state."""
STATE_FORMAT = f"{_STORE_CONF}.checkpointFormatVersion"
"""Conf with the format of state; from 2 on the files of each batch have ids, which the commit log names."""
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
"""Conf with the format in which joins keep their state."""
EMPTY_JOIN_FORMATS = ("1", "2")
"""In which the empty state of a join is known."""
_CHANGELOG = f"{_STORE_CONF}.rocksdb.changelogCheckpointing.enabled"
_WHOLE_FILES = {
    # A snapshot is one file that can be renamed to any version; a change log is read only after the snapshot that it follows.
    _CHANGELOG: "false",
    STATE_FORMAT: "1",
}
_SNAPSHOTS = {"1.delta": "snapshot", "1.zip": "zip"}
"""What the two providers write for version 1, and what a snapshot of any version is called. An empty delta *is* a snapshot."""

_PARTITIONS = "spark.sql.shuffle.partitions"
_JOIN = "StreamingSymmetricHashJoinExec"
_DEFAULT_STORE = "default"
_JOIN_STORES = ("left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue")


@dataclass(frozen=True)
class OperatorStores:
    """The stores of one stateful operator.

    Parameters
    ----------
    operator_id
        Its number in the plan.
    operator
        Class of the physical operator.
    partitions
        How many partitions it has.
    names
        Names of its stores, in each partition.
    initial_state
        Whether it begins with state that the application hands over.
    metadata
        What Spark has to find of it in ``_metadata/v2`` when its first batch is not 0, or "".
    """

    operator_id: int
    operator: str
    partitions: int
    names: tuple[str, ...]
    initial_state: bool
    metadata: str = ""

    def folders(self) -> list[str]:
        """Return the folders of its stores, relative to the checkpoint."""
        return [
            f"state/{self.operator_id}/{partition}" + ("" if name == _DEFAULT_STORE else f"/{name}")
            for partition in range(self.partitions)
            for name in self.names
        ]


@dataclass(frozen=True)
class EmptyStore:
    """A file with a store that holds nothing.

    Parameters
    ----------
    uri
        Where it is.
    suffix
        A snapshot of version V is named ``V.suffix``.
    """

    uri: str
    suffix: str


def pinned_confs(internals: SparkInternals) -> dict[str, str]:
    """Return the confs that Spark would note in the offset log of a query which this session starts now, with their values."""
    session = internals.java_session()
    confs = json.loads(str(_module(internals, _METADATA).apply(0, 0, session.conf()).json()))["conf"]
    # Newer Sparks keep the partitions of state in a conf of their own, which they set when the query starts.
    return {**{str(key): str(value) for key, value in confs.items()}, _PARTITIONS: str(session.conf().get(_PARTITIONS))}


def planned_stores(internals: SparkInternals, captured: CapturedWriter, checkpoint: str, metadata: str) -> tuple[OperatorStores, ...]:
    """Return the stores that each batch of the query opens, operator by operator.

    Parameters
    ----------
    internals, captured
        The query.
    checkpoint
        URI of its checkpoint.
    metadata
        JSON of a batch's metadata in the offset log.

    Raises
    ------
    UnsupportedSparkError
        This Spark plans batches in another way.
    """
    try:
        plan = _execution(internals, captured, checkpoint, metadata).executedPlan()
        stateful = internals.jvm.java.lang.Class.forName(internals.first_class(_STATEFUL)._fqn)
        found: dict[int, OperatorStores] = {}
        _collect(plan, stateful, found)
    except (Py4JError, PySparkException, TypeError) as error:
        raise UnsupportedSparkError(
            f"the state stores of a query cannot be planned on Spark {internals.spark_version}: {in_words(error)}"
        ) from error
    return tuple(found[number] for number in sorted(found))


def _execution(internals: SparkInternals, captured: CapturedWriter, checkpoint: str, metadata: str) -> Any:
    jvm = internals.jvm
    session = _like_a_query(internals, json.loads(metadata).get("conf", {}))
    arguments = [
        session,
        captured.dataset.queryExecution().analyzed(),
        captured.fields["outputMode"],
        f"{checkpoint.rstrip('/')}/state",
        jvm.java.util.UUID.randomUUID(),
        jvm.java.util.UUID.randomUUID(),
        0,  # in the plan of any other batch an initial state does not show
        jvm.scala.Option.empty(),
        _module(internals, _METADATA).apply(metadata),
        _module(internals, _PROPAGATORS).noop(),
    ]
    execution = internals.first_class(_EXECUTIONS)
    constructor = max(jvm.java.lang.Class.forName(execution._fqn).getConstructors(), key=lambda item: int(item.getParameterCount()))
    if int(constructor.getParameterCount()) > len(arguments):
        arguments.append(False)  # not the first batch: that would write the metadata of its operators to the checkpoint
    while len(arguments) < int(constructor.getParameterCount()):
        arguments.append(getattr(execution, f"$lessinit$greater$default${len(arguments) + 1}")())
    return execution(*arguments)


def _collect(plan: Any, stateful: Any, found: dict[int, OperatorStores]) -> None:
    children = plan.children()
    info = plan.stateInfo() if stateful.isInstance(plan) else None
    if info is not None and info.isDefined():
        number, operator = int(info.get().operatorId()), str(plan.getClass().getSimpleName())
        stores = _stores(plan, operator)
        known = found.get(number)
        if known is None or len(stores) > len(known.names):  # the half of an operator that restores state names no stores
            over_all_rows = int(children.apply(0).outputPartitioning().numPartitions()) == 1  # as a limit; its state info has the conf
            partitions = 1 if over_all_rows else int(info.get().numPartitions())
            initial = bool(private_field(plan, "hasInitialState"))
            metadata = _metadata(plan, number, partitions) if operator.startswith("TransformWithState") else ""
            found[number] = OperatorStores(number, operator, partitions, stores, initial, metadata)
    for index in range(children.size()):
        _collect(children.apply(index), stateful, found)


def _metadata(plan: Any, number: int, partitions: int) -> str:
    """Return the metadata of a transformWithState that has had no state variable so far."""
    properties = {"timeMode": str(plan.timeMode().toString()), "outputMode": str(plan.outputMode().toString()), "stateVariables": []}
    store = {"storeName": _DEFAULT_STORE, "numColsPrefixKey": 0, "numPartitions": partitions, "stateSchemaFilePaths": []}
    described = {
        "operatorInfo": {"operatorId": number, "operatorName": str(plan.shortName())},
        "stateStoreInfo": [store],
        "operatorPropertiesJson": json.dumps(properties),
    }
    return f"v2\n{json.dumps(described)}"


def _stores(plan: Any, operator: str) -> tuple[str, ...]:
    if operator == _JOIN and (version := str(private_field(plan, "stateFormatVersion") or 1)) not in EMPTY_JOIN_FORMATS:
        newest = EMPTY_JOIN_FORMATS[-1]
        raise UnsupportedSparkError(
            f"{JOIN_FORMAT} is {version}, and the empty state of a join is known up to {newest}: start it with {newest}"
        )
    names = private_field(plan, "stateStoreNames")
    if names is not None:
        return tuple(str(names.apply(index)) for index in range(names.size()))
    return _JOIN_STORES if operator == _JOIN else (_DEFAULT_STORE,)


def late_snapshots_seconds(internals: SparkInternals) -> float:
    """Return for how long snapshots may be uploaded after a query has ended; 0 where stores upload them with each batch."""
    provider, changelog = internals.session_conf(STATE_PROVIDER, ""), internals.session_conf(_CHANGELOG, "false")
    if "RocksDB" not in provider or changelog != "true":
        return 0.0
    return float(internals.session_state().conf().streamingMaintenanceInterval()) / 1000


def empty_store(internals: SparkInternals, confs: Mapping[str, str], folder: str) -> EmptyStore:
    """Have the state store provider make a store with nothing in it.

    Parameters
    ----------
    internals
        Access to Spark.
    confs
        Confs of the query's batches, the provider's class among them.
    folder
        URI of a folder that does not exist.

    Raises
    ------
    UnsupportedSparkError
        The provider is not known.
    """
    jvm = internals.jvm
    # The provider asks for a coordinator, which Spark makes with its manager of queries: a new driver may have started none yet.
    _ = internals.session.streams.active
    session = _like_a_query(internals, {**confs, **_WHOLE_FILES})
    conf, state = session.sessionState().conf(), getattr(jvm, _STATE)
    provider_class = str(session.conf().get(STATE_PROVIDER))
    try:
        schema = jvm.org.apache.spark.sql.types.StructType.fromDDL("k INT")
        store_id = state.StateStoreId(folder, 0, 0, _DEFAULT_STORE)
        providers = _module(internals, (f"{_STATE}.StateStoreProvider",))
        given = [state.StateStoreProviderId(store_id, jvm.java.util.UUID.randomUUID()), schema, schema]
        configured = [_module(internals, (f"{_STATE}.StateStoreConf",)).apply(conf), session.sessionState().newHadoopConf()]
        if internals.spark_version.startswith("3."):
            provider = providers.createAndInit(*given, 0, *configured)
        else:
            encoder = state.NoPrefixKeyStateEncoderSpec(schema)
            provider = providers.createAndInit(*given, encoder, False, *configured, False, jvm.scala.Option.empty())
        try:
            _with_defaults(provider, "getStore", 0).commit()
        finally:
            provider.close()
        written = str(store_id.storeCheckpointLocation().toString())
        filesystem = jvm.org.apache.hadoop.fs.Path(written).getFileSystem(internals.hadoop_conf())
        for name, suffix in _SNAPSHOTS.items():
            path = jvm.org.apache.hadoop.fs.Path(written, name)
            if filesystem.exists(path):
                return EmptyStore(str(path.toString()), suffix)
    except (Py4JError, PySparkException, TypeError) as error:
        raise UnsupportedSparkError(
            f"{provider_class} of Spark {internals.spark_version} makes no empty store: {in_words(error)}"
        ) from error
    raise UnsupportedSparkError(f"{provider_class} keeps its state in files that this agent does not know")


def _like_a_query(internals: SparkInternals, confs: Mapping[str, str]) -> Any:
    """Return a session as Spark makes one for a query, with the confs that its log pins."""
    session = internals.java_session().cloneSession()
    for name, value in {**confs, "spark.sql.adaptive.enabled": "false", "spark.sql.cbo.enabled": "false"}.items():
        session.conf().set(name, value)
    return session


def _with_defaults(target: Any, method: str, *given: Any) -> Any:
    """Call a Scala method with its own default values for all arguments that are not given."""
    arguments = list(given)
    with suppress(Py4JError):
        while hasattr(target, f"{method}$default${len(arguments) + 1}"):
            arguments.append(getattr(target, f"{method}$default${len(arguments) + 1}")())
    return getattr(target, method)(*arguments)


def _module(internals: SparkInternals, names: tuple[str, ...]) -> Any:
    """Return the companion object of the first class that there is."""
    return companion(internals.jvm, internals.first_class(names)._fqn)
