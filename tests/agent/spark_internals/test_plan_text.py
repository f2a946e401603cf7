"""The text of a plan: equal for equal plans of two runs, another for a plan that computes something else."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.udtf import UserDefinedTableFunction
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.agent.queries.test_catch_up import Taciturn
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

Plan = Callable[["Plans", str], DataFrame]
LARGE = "x" * 2_000_000


class Plans:
    """Makes plans on an empty folder."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def events(self, **options: str) -> DataFrame:
        read = self.spark.readStream.schema("id long, name string, at timestamp, amount long").options(**options)
        return read.json(str(self.folder))

    def sql(self, text: str, function: Callable[[int], int]) -> DataFrame:
        """Return a query on ``events`` and ``limits``, of which the latter are made by a function."""
        self.events().createOrReplaceTempView("events")
        self.spark.range(3).select(F.udf(function, "long")("id").alias("most")).createOrReplaceTempView("limits")
        return self.spark.sql(text)


def joined(plans: Plans, side: str) -> DataFrame:
    both = plans.events().alias("a").join(plans.events().alias("b"), F.expr("a.id = b.id"))
    return both.select(F.col(f"{side}.amount"))


def watermarked(plans: Plans, side: str) -> DataFrame:
    static = plans.spark.range(5).selectExpr("id", "timestamp'2026-01-01' as at")
    both = plans.events().alias("a").join(static.alias("b"), "id").select("id", F.col(f"{side}.at"))
    return both.withWatermark("at", "30 seconds")


def of_name(plans: Plans, name: str) -> DataFrame:
    return plans.events().where(F.col("name") == name).where(F.col("name").isin("z", name))


def of_table_function(plans: Plans, factor: str) -> DataFrame:
    class Scaled:
        def eval(self, number: int) -> object:
            yield (number * int(factor),)

    scaled = F.udtf(Scaled, returnType="scaled long")
    assert isinstance(scaled, UserDefinedTableFunction)
    plans.spark.udtf.register("scaled", scaled)
    plans.events().createOrReplaceTempView("events")
    return plans.spark.sql("SELECT at, scaled FROM events, LATERAL scaled(id)")


def of_subquery(condition: str) -> Plan:
    return lambda plans, step: plans.sql(f"SELECT * FROM events WHERE {condition}", lambda number: number + int(step))


def of_large_function(plans: Plans, step: str) -> DataFrame:
    return plans.events().select(F.udf(lambda number: LARGE and number + int(step), "long")("id"))


def of_broadcast_variable(plans: Plans, step: str) -> DataFrame:
    table = plans.spark.sparkContext.broadcast({"a": 1})
    return plans.events().select(F.udf(lambda number: table.value and number + int(step), "long")("id"))


def of_rows(plans: Plans, name: str) -> DataFrame:
    return plans.events().join(plans.spark.sql(f"SELECT * FROM VALUES (1L, '{name}') AS names(id, of)"), "id")


def of_higher_order(plans: Plans, step: str) -> DataFrame:
    return plans.events().select(F.transform(F.array("id"), lambda number: number + int(step)))


def of_static_side(plans: Plans, name: str) -> DataFrame:
    file = plans.folder.parent / f"static-{name}.json"
    file.write_text('{"id": 1}\n')
    return plans.events().join(plans.spark.read.schema("id long").json(str(file)), "id")


def of_list(plans: Plans, names: str) -> DataFrame:
    return plans.events().where(~F.col("name").isin(*names))


def started_anew(plans: Plans, start: str) -> dict[str, DataFrame]:
    """Return plans of which Spark, or the order of a set, makes something else at each start."""
    events = plans.events()
    if start == "second":
        plans.spark.range(2).count()
    seed = {"first": 1, "second": 2}[start]
    names = ["a", "b)", "c"] if start == "first" else ["c", "b)", "a"]
    return {
        "rand": events.select((F.rand() * 10).alias("salt"), F.randn()),
        "sql": events.selectExpr("uuid() AS id", "shuffle(array(id, amount)) AS both", "rand() AS salt"),
        "sample": events.sample(0.5),
        "seeds": events.select(F.rand(seed), F.shuffle(F.array("id", "amount"))),
        "metrics": events.observe("metrics", F.count("*").alias("rows"), F.max("id").alias("last")),
        "list": events.where(F.col("name").isin(*names) | F.when(~F.col("name").isin(*names), F.rand() > 0)),
    }


CASES: dict[str, tuple[Plan, str, str]] = {
    "column-of-one-name": (joined, "a", "b"),
    "watermark-of-one-name": (watermarked, "a", "b"),
    "uuid": (of_name, "6f1c0000-1111-4222-8333-444455556666", "7f1c0000-1111-4222-8333-444455556666"),
    "like-an-id": (of_name, "order#12", "order#13"),
    "like-a-hash": (of_name, "ops@acme.com", "ops@bcme.com"),
    "table-function": (of_table_function, "1", "2"),
    "scalar-subquery": (of_subquery("id > (SELECT max(most) FROM limits)"), "1", "2"),
    "in-subquery": (of_subquery("id IN (SELECT most FROM limits)"), "1", "2"),
    "exists-subquery": (of_subquery("EXISTS (SELECT 1 FROM limits WHERE most = events.id)"), "1", "2"),
    "large-function": (of_large_function, "1", "2"),
    "broadcast-variable": (of_broadcast_variable, "1", "2"),
    "source-option": (lambda plans, glob: plans.events(pathGlobFilter=glob), "a*", "b*"),
    "rows": (of_rows, "a", "b"),
    "higher-order-function": (of_higher_order, "1", "2"),
    "static-side": (of_static_side, "a", "b"),
    "list": (of_list, "ab", "ac"),
}


@pytest.fixture
def plans(warm: Warm, tmp_path: Path) -> Plans:
    (tmp_path / "events").mkdir()
    return Plans(warm.session, tmp_path / "events")


def text(plan: DataFrame) -> tuple[str, tuple[str, ...]]:
    internals = SparkInternals(plan.sparkSession)
    captured = internals.capture(plan.writeStream)
    return internals.analyzed_text(captured), internals.watermarks(captured)


@pytest.mark.parametrize("case", CASES)
def test_another_plan_has_another_text(plans: Plans, case: str) -> None:
    make, first, second = CASES[case]
    assert text(make(plans, first))[0] != text(make(plans, second))[0]


@pytest.mark.parametrize("case", CASES)
def test_what_differs_from_run_to_run_does_not_count(plans: Plans, case: str) -> None:
    """Each plan has ids of its own, and objects of its own in the JVM."""
    make, first, _ = CASES[case]
    before = text(make(plans, first))
    plans.spark.range(3).count()
    assert text(make(plans, first)) == before


def test_what_each_start_makes_anew_does_not_count(plans: Plans) -> None:
    first, second = ({name: text(plan) for name, plan in started_anew(plans, start).items()} for start in ("first", "second"))
    assert [name for name in first if first[name] != second[name]] == []
    assert len({*first.values()}) == len(first)


def from_python(plans: Plans) -> DataFrame:
    plans.spark.dataSource.register(Taciturn)
    return plans.spark.readStream.format("taciturn").load().selectExpr("timestamp_seconds(1) AS at", "*")


def of_csv(plans: Plans) -> DataFrame:
    (plans.folder.parent / "regions.csv").write_text("1\n")
    return plans.spark.read.schema("hours int").csv(str(plans.folder.parent / "regions.csv"))


def of_table_in_subquery(plans: Plans) -> DataFrame:
    of_csv(plans).createOrReplaceTempView("regions")
    plans.events().createOrReplaceTempView("events")
    return plans.spark.sql("SELECT timestampadd(HOUR, -(SELECT max(hours) FROM regions), at) AS at FROM events")


OF_CODE: dict[str, Callable[[Plans], DataFrame]] = {
    "function": lambda plans: plans.events().withColumn("at", F.udf(lambda at: at, "timestamp")("at")),
    "pandas": lambda plans: plans.events().mapInPandas(lambda frames: frames, "at timestamp"),
    "table function": lambda plans: of_table_function(plans, "1"),
    "in a filter": lambda plans: plans.events().where(F.udf(lambda number: number > 1, "boolean")("id")),
    "Java": lambda plans: plans.events().selectExpr("timestamp_seconds(CAST(reflect('java.lang.Math', 'abs', 1) AS int)) AS at"),
    "source": from_python,
    "rows": lambda plans: plans.events().crossJoin(plans.spark.createDataFrame(plans.spark.sparkContext.parallelize([(1,)]), "hours int")),
    "table": lambda plans: plans.events().crossJoin(of_csv(plans)),
    "table in a subquery": of_table_in_subquery,
}


@pytest.mark.parametrize("case", OF_CODE)
def test_an_event_time_in_which_code_takes_part_equals_no_other(plans: Plans, case: str) -> None:
    """Whatever that code reads may be another file, variable or library than it was for the version before."""
    timed = OF_CODE[case](plans).withWatermark("at", "1 minute")
    assert text(timed)[1] != text(timed)[1]


def test_an_event_time_without_code_equals_itself(plans: Plans) -> None:
    exploded = plans.events().select("at", F.explode(F.array("id"))).withWatermark("at", "1 minute")
    assert text(exploded)[1] == text(exploded)[1]
    after = exploded.withColumn("id", F.udf(lambda number: number, "long")("col"))
    assert text(after)[1] == text(after)[1]


@pytest.mark.parametrize("conf", ["spark.sql.ansi.enabled", "spark.sql.session.timeZone"])
def test_what_texts_become_counts(plans: Plans, conf: str) -> None:
    """As it is when the query starts."""
    internals, found = SparkInternals(plans.spark), set()
    timed = plans.events().withWatermark("at", "1 minute")
    before = plans.spark.conf.get(conf)
    try:
        for value in {"spark.sql.ansi.enabled": ("true", "false"), "spark.sql.session.timeZone": ("UTC", "Asia/Tokyo")}[conf]:
            plans.spark.conf.set(conf, value)
            captured = internals.capture(timed.writeStream)
            plans.spark.conf.set(conf, before or "")
            found.add((internals.analyzed_text(captured), internals.watermarks(captured)))
    finally:
        plans.spark.conf.set(conf, before or "")
    assert len({plan for plan, _ in found}) == len({watermarks for _, watermarks in found}) == 2


def test_a_plan_may_be_deep(plans: Plans) -> None:
    plan = plans.events()
    for number in range(300):
        plan = plan.withColumn("name", F.upper("name") if number else F.udf(str.upper)("name"))
    assert text(plan)[0]


def test_a_watermark_on_another_column_of_its_name_is_another_one(plans: Plans) -> None:
    assert text(watermarked(plans, "a"))[1] != text(watermarked(plans, "b"))[1]


@pytest.mark.parametrize("option", ["my.password", "startingOffsets", "maxFilesPerTrigger", "kafka.group.id", "kafka.client.id"])
def test_options_that_belong_to_a_run_do_not_count(plans: Plans, option: str) -> None:
    assert text(plans.events(**{option: "1"})) == text(plans.events(**{option: "2"}))


def test_where_spark_has_fetched_a_file_of_an_option_does_not_count(plans: Plans) -> None:
    """Each run has a folder of its own for what is shipped to it, such as a truststore."""
    folders = [f"/tmp/spark-{uuid.uuid4()}/userFiles-{uuid.uuid4()}" for _ in range(2)]
    stores = [plans.events(**{"kafka.ssl.truststore.location": f"{folder}/trust.jks"}) for folder in folders]
    assert text(stores[0]) == text(stores[1])
    assert text(stores[0]) != text(plans.events(**{"kafka.ssl.truststore.location": f"{folders[0]}/other.jks"}))
