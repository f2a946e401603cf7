"""The pipeline under test: numbered events into a table. Usage: app.py INPUT BASE VERSION CASE, where CASE is a `Case` as JSON.

Each row says how many events it counts (n), the sum of their numbers (s) and the sum of their squares (q). Versions v1
and v1b count alike; v2 has other windows, keys and number of partitions, in the same columns.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_drain_agent import generation, is_drain_pane, milestones

source, base, version = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
case: dict[str, Any] = json.loads(sys.argv[4])
table = str(base / "table")

CONFS: dict[str, dict[str, bool | float | int | str | None]] = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(base / "lake"),
        "spark.sql.catalog.lake.cache-enabled": "false",
    },
    "hudi": {
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    },
}
HUDI = {
    "hoodie.table.name": "counts",
    "hoodie.datasource.write.recordkey.field": "bucket",
    "hoodie.datasource.write.precombine.field": "n",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.metadata.enable": "false",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
}
ONE_FILE = {"maxFilesPerTrigger": "1", "streaming-max-files-per-micro-batch": "1"}
"""A batch, for Delta and for Iceberg."""

COLUMNS = "bucket STRING, n LONG, s LONG, q LONG"


def events() -> DataFrame:
    if case["source"] == "files":
        read = spark.readStream.schema("id LONG, key STRING, at TIMESTAMP").option("maxFilesPerTrigger", 1).json(source)
    else:
        options = {name: value.format(base=base) for name, value in case["readOptions"].items()}
        reader = spark.readStream.format(case["source"]).options(**ONE_FILE, **options)
        makes = {"iceberg": events_in_iceberg, "delta": events_in_delta if "schemaTrackingLocation" in options else lambda: source}
        read = reader.load(makes[case["source"]]())
    return read.withWatermark("at", "30 seconds")


def events_in_iceberg() -> str:
    """Return the name of an Iceberg table with the events, each file in a snapshot of its own."""
    name = "lake.db.events"
    if not spark.catalog.tableExists(name):
        spark.sql(f"CREATE TABLE {name} (id LONG, key STRING, at TIMESTAMP) USING iceberg")
        for file in sorted(Path(source).iterdir()):
            spark.read.schema("id LONG, key STRING, at TIMESTAMP").json(str(file)).coalesce(1).writeTo(name).append()
    return name


def events_in_delta() -> str:
    """Return the folder of a Delta table with the events, whose columns can be renamed, each file in a version of its own."""
    folder = base / "events"
    if not folder.exists():
        columns = "id LONG, key STRING, at TIMESTAMP"
        spark.sql(f"CREATE TABLE delta.`{folder}` ({columns}) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        for file in sorted(Path(source).iterdir()):
            spark.read.schema(columns).json(str(file)).coalesce(1).write.format("delta").mode("append").save(str(folder))
    return str(folder)


def counted() -> DataFrame:
    """Return rows with the table's columns."""
    number, square = F.col("id"), F.col("id") * F.col("id")
    if case["rows"] == "records":
        bucket = F.concat_ws("/", F.lit(version), "id")
        return events().select(bucket.alias("bucket"), F.lit(1).cast("long").alias("n"), number.alias("s"), square.alias("q"))
    keys = [F.col("key")] if version.startswith("v1") else [number % 3, F.length("key")]
    if case["rows"] == "windows":
        keys.append(F.window("at", "60 seconds" if version.startswith("v1") else "45 seconds"))
    grouped = events().groupBy(*(key.alias(f"k{index}") for index, key in enumerate(keys)))
    sums = grouped.agg(F.count("*").alias("n"), F.sum(number).alias("s"), F.sum(square).alias("q"))
    of_generation = F.udf(lambda _: str(generation()), "string")
    more = {"version": [F.lit(version)], "generation": [of_generation("n")], "nothing": []}[case["key"]]
    bucket = F.concat_ws("/", *more, *(F.col(f"k{index}").cast("string") for index in range(len(keys))))
    return sums.select(bucket.alias("bucket"), "n", "s", "q")


def write_once(batch: DataFrame, batch_id: int) -> None:
    """Write as Delta's documentation says for foreachBatch: a batch whose id the table knows is left out."""
    batch.write.format("delta").mode("append").option("txnAppId", "counts").option("txnVersion", batch_id).save(table)
    if is_drain_pane():
        milestones.reached("after-sink-write")


os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.warehouse.dir", str(base / "warehouse"))
    .config("spark.sql.shuffle.partitions", "2" if version.startswith("v1") else "3")
    .config(map=CONFS[case["format"]] | case["confs"])
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
checkpoint = str(base / "checkpoints" / "counts")
writer = counted().writeStream.queryName("counts").outputMode(case["mode"]).option("checkpointLocation", checkpoint)
into = case["into"]
if into == "foreachBatch":
    query = writer.foreachBatch(write_once).start()
else:
    writer = writer.format(case["format"]).options(**(HUDI if case["format"] == "hudi" else {}), **case["writeOptions"])
    if case["format"] == "iceberg":
        spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
        spark.sql(f"CREATE TABLE IF NOT EXISTS lake.db.counts ({COLUMNS}) USING iceberg")
        spark.catalog.setCurrentCatalog("lake")
        spark.catalog.setCurrentDatabase("db")
    elif into != "path":
        spark.sql(f"CREATE TABLE IF NOT EXISTS counts ({COLUMNS}) USING {case['format']} LOCATION '{table}'")
    query = writer.start(table if into == "path" else "lake.db.counts") if into in ("path", "name") else writer.toTable(into)
    spark.catalog.setCurrentCatalog("spark_catalog")  # where the name of an Iceberg table would be another table's
    spark.catalog.setCurrentDatabase("default")
milestones.reached("all-started")
query.awaitTermination()
