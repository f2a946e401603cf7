"""Keep a balance per account, without end: state that no watermark ever emits. Usage: v1.py FOLDER."""

import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout


def add(key: Any, payments: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Add payments to an account's balance."""
    balance = state.get[0] if state.exists else 0
    balance += sum(int(part["amount"].sum()) for part in payments)
    state.update((balance,))
    yield pd.DataFrame({"account": [key[0]], "balance": [balance]})


def start(spark: SparkSession, folder: str) -> StreamingQuery:
    """Start the query."""
    payments = spark.readStream.schema("account STRING, amount LONG").json(f"{folder}/payments")
    balances = payments.groupBy("account").applyInPandasWithState(
        add, "account STRING, balance LONG", "balance LONG", "update", GroupStateTimeout.NoTimeout
    )

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("overwrite").json(f"{folder}/balances/v1-{batch_id}")

    writer = balances.writeStream.queryName("balances").outputMode("update").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.foreachBatch(write).start()


if __name__ == "__main__":
    start(SparkSession.builder.appName("balances-v1").getOrCreate(), sys.argv[1]).awaitTermination()
