"""The next version: balances and the number of payments, in a state of another shape that begins with version 1's balances.

Version 1 was drained with `stateExport: {path: FOLDER/state}`, `stateLossPolicy: Accept`, and `checkpoint: {policy: Reseed,
acceptBatchIdRestart: true}`, since Spark applies an initial state in batch 0 only. transformWithState keeps its state in RocksDB, so this
version sets `spark.sql.streaming.stateStore.providerClass`; a reseeded checkpoint lets it. Usage: v2.py FOLDER.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Balances(StatefulProcessor):
    """Adds payments to balances and counts them."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self.account = handle.getValueState("account", "balance LONG, payments LONG")

    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:  # noqa: ARG002, N802, N803
        """Begin where version 1 ended."""
        self.account.update((int(initialState["balance"].iloc[0]), 0))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803
        """Add payments."""
        balance, payments = self.account.get() or (0, 0)
        for part in rows:
            balance += int(part["amount"].sum())
            payments += len(part)
        self.account.update((balance, payments))
        yield pd.DataFrame({"account": [key[0]], "balance": [balance], "payments": [payments]})

    def close(self) -> None:
        """Nothing to close."""


def start(spark: SparkSession, folder: str) -> StreamingQuery:
    """Start the query."""
    exported = spark.read.parquet(f"{folder}/state/balances/0-applyInPandasWithState/default")
    balances = exported.select("key.account", "value.groupState.balance")
    payments = spark.readStream.schema("account STRING, amount LONG").json(f"{folder}/payments")
    kept = payments.groupBy("account").transformWithStateInPandas(
        Balances(),
        outputStructType="account STRING, balance LONG, payments LONG",
        outputMode="Update",
        timeMode="None",
        initialState=balances.groupBy("account"),
    )

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("overwrite").json(f"{folder}/balances/v2-{batch_id}")

    writer = kept.writeStream.queryName("balances").outputMode("update").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.foreachBatch(write).start()


if __name__ == "__main__":
    session = SparkSession.builder.appName("balances-v2").config("spark.sql.streaming.stateStore.providerClass", ROCKSDB).getOrCreate()
    start(session, sys.argv[1]).awaitTermination()
