"""What of a failure's text leads, and that only the rest is cut: texts as Spark and py4j wrap them."""

from __future__ import annotations

import pytest
from spark_drain_agent.spark_internals.errors import cause_first, chain_of

STREAM_FAILED = (
    "[STREAM_FAILED] Query [id = 877ae829-0216-4951-a02f-ec0edbef5d8c, runId = aba75214-afe2-4d12-853a-d29830bdebaf] "
    "terminated with exception: "
)
FOREACH_BATCH = (
    f"{STREAM_FAILED}[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. "
    "Reason: An exception was raised by the Python Proxy. Return Message: "
)
PROXY = """Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/opt/venv/lib/python3.11/site-packages/pyspark/sql/utils.py", line 166, in call
    raise e
  File "/opt/venv/lib/python3.11/site-packages/pyspark/sql/utils.py", line 163, in call
    self.func(DataFrame(jdf, wrapped_session_jdf), batch_id)
"""
ENDED = """ SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 877ae829-0216-4951-a02f-ec0edbef5d8c, runId = aba75214-afe2-4d12-853a-d29830bdebaf]
Current Committed Offsets: {}
Current Available Offsets: {FileStreamSource[file:/data/in]: {"logOffset":0}}

Current State: ACTIVE
Thread State: RUNNABLE

Logical Plan:
~WriteToMicroBatchDataSourceV1 ForeachBatchSink, 877ae829-0216-4951-a02f-ec0edbef5d8c, [checkpointLocation=/data/checkpoint], Append
"""

FAILING_BATCH = f"""batch 3 failed: {FOREACH_BATCH}{PROXY}  File "/app/job.py", line 27, in write
    raise ValueError("this window is poisonous")
ValueError: this window is poisonous
{ENDED}"""

RAISED_FROM = f"""{FOREACH_BATCH}Traceback (most recent call last):
  File "/app/job.py", line 30, in chained
    {{}}["k"]
    ~~^^^^^
KeyError: 'k'

The above exception was the direct cause of the following exception:

{PROXY}  File "/app/job.py", line 32, in chained
    raise RuntimeError("no such key\\nsecond line") from e
RuntimeError: no such key
second line
{ENDED}"""

RAISED_WHILE_HANDLING = f"""{FOREACH_BATCH}Traceback (most recent call last):
  File "/app/job.py", line 35, in during
    {{}}["k"]
    ~~^^^^^
KeyError: 'k'

During handling of the above exception, another exception occurred:

{PROXY}  File "/app/job.py", line 37, in during
    raise RuntimeError("no such key\\nsecond line")
RuntimeError: no such key
second line
{ENDED}"""

UDF_IN_A_BATCH_FUNCTION = f"""{FOREACH_BATCH}{PROXY}  File "/app/job.py", line 41, in nested
    batch.select(bad("id")).collect()
  File "/opt/venv/lib/python3.11/site-packages/pyspark/sql/classic/dataframe.py", line 503, in collect
    sock_info = self._jdf.collectToPython()
                ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/opt/venv/lib/python3.11/site-packages/pyspark/errors/exceptions/captured.py", line 257, in deco
    raise converted from None
  File "/app/job.py", line 40, in bad
    def bad(x): raise ValueError("bad row %d"%x)
      ^^^^^^^^^^^^^^^^^
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/app/job.py", line 40, in bad
    def bad(x): raise ValueError("bad row %d"%x)
                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: bad row 1
{ENDED}"""

IN_A_LIBRARY = f"""{FOREACH_BATCH}{PROXY}  File "/app/job.py", line 43, in library
    json.loads("{{nope")
  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^
json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
{ENDED}"""

INSTALLED = f"""{FOREACH_BATCH}{PROXY}  File "/opt/venv/lib/python3.11/site-packages/shop/orders.py", line 7, in write
    raise OSError
OSError
{ENDED}"""

WORKER_OF_SPARK_3 = """org.apache.spark.sql.streaming.StreamingQueryException: [STREAM_FAILED] Query [id = 1, runId = 2] \
terminated with exception: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in \
stage 3.0 (TID 9) (10.0.0.7 executor 1): org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1247, in main
    process()
  File "/app/job.py", line 54, in grow
    raise ZeroDivisionError("group broke")
ZeroDivisionError: group broke

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
\tat java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace:"""

FULL_DISK = """org.apache.spark.sql.streaming.StreamingQueryException: [STREAM_FAILED] Query [id = 1, runId = 2] \
terminated with exception: Job aborted. SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 1, runId = 2]
Caused by: org.apache.spark.SparkException: Job aborted.
Caused by: java.io.IOException: No space left on device"""

DIVIDED = f"""{STREAM_FAILED}[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. \
SQLSTATE: 22012
== SQL (line 1, position 1) ==
id/(id-id)
^^^^^^^^^^
 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 1, runId = 2]"""

WRITTEN_IN_A_BATCH = f"""batch 5 failed: {FOREACH_BATCH}{PROXY}  File "/app/job.py", line 27, in write
    batch.write.parquet("/data/out")
  File "/opt/venv/lib/python3.11/site-packages/py4j/protocol.py", line 327, in get_return_value
    raise Py4JJavaError(
py4j.protocol.Py4JJavaError: An error occurred while calling o2355.parquet.
: java.io.IOException: Mkdirs failed to create file:/data/out
\tat org.apache.hadoop.fs.ChecksumFileSystem.create(ChecksumFileSystem.java:515)
{ENDED}"""
WRITTEN_BY_THE_AGENT = WRITTEN_IN_A_BATCH.replace("/app/", "/opt/venv/lib/python3.11/site-packages/spark_drain_agent/")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (WRITTEN_IN_A_BATCH, "java.io.IOException (/app/job.py, line 27, in write): Mkdirs failed to create file:/data/out"),
        (WRITTEN_BY_THE_AGENT, "java.io.IOException: Mkdirs failed to create file:/data/out"),
        (FAILING_BATCH, "ValueError (/app/job.py, line 27, in write): this window is poisonous"),
        (RAISED_FROM, "KeyError (/app/job.py, line 30, in chained): 'k'"),
        (RAISED_WHILE_HANDLING, "RuntimeError (/app/job.py, line 37, in during): no such key\nsecond line"),
        (UDF_IN_A_BATCH_FUNCTION, "ValueError (/app/job.py, line 40, in bad): bad row 1"),
        (
            IN_A_LIBRARY,
            "json.decoder.JSONDecodeError (/app/job.py, line 43, in library): "
            "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        (INSTALLED, "OSError (/opt/venv/lib/python3.11/site-packages/shop/orders.py, line 7, in write)"),
        (WORKER_OF_SPARK_3, "ZeroDivisionError (/app/job.py, line 54, in grow): group broke"),
        (FULL_DISK, "java.io.IOException: No space left on device"),
        (
            DIVIDED,
            "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. SQLSTATE: 22012\n"
            "== SQL (line 1, position 1) ==\nid/(id-id)\n^^^^^^^^^^",
        ),
    ],
    ids=[
        "written",
        "written-by-the-agent",
        "batch",
        "raised-from",
        "while-handling",
        "udf-in-batch",
        "library",
        "installed",
        "worker-3.5",
        "full-disk",
        "expression",
    ],
)
@pytest.mark.parametrize("limit", [1, 500, 100_000])
def test_the_innermost_cause_leads_and_is_never_cut(text: str, cause: str, limit: int) -> None:
    told = cause_first(text, limit)
    assert told.startswith(cause)
    assert len(told) <= max(limit, len(cause))
    if limit > 2 * len(text):
        assert told == f"{cause}; in full: {text.strip()}"


@pytest.mark.parametrize(
    ("text", "limit", "told"),
    [
        ("", 10, ""),
        ("the query ended", 20, "the query ended"),
        ("the query ended", 8, "the que…"),
        ("java.io.IOException: No space left", 100, "java.io.IOException: No space left"),
    ],
)
def test_a_text_that_wraps_nothing_is_told_as_it_is(text: str, limit: int, told: str) -> None:
    assert cause_first(text, limit) == told


def test_a_cause_without_end_is_cut_behind_its_place() -> None:
    told = cause_first(FAILING_BATCH.replace("poisonous", "poisonous " * 10_000), 1000)
    assert told.startswith("ValueError (/app/job.py, line 27, in write): this window is poisonous")
    assert len(told) == 4000


@pytest.mark.parametrize("words", ["an empty line\n\nin it", "a colon: in it"])
def test_all_lines_of_a_cause_are_kept(words: str) -> None:
    assert words in cause_first(FAILING_BATCH.replace("ValueError: this window is poisonous", f"ValueError: {words}"), 1)


class JavaException:
    """What `chain_of` asks of one."""

    def __init__(self, text: str, cause: JavaException | None = None) -> None:
        self._text, self._cause = text, cause

    def toString(self) -> str:  # noqa: N802  # Java's name
        return self._text

    def getCause(self) -> JavaException | None:  # noqa: N802
        return self._cause


def test_a_cause_that_its_wrapper_tells_word_for_word_is_told_once() -> None:
    full = JavaException("java.io.IOException: No space left on device")
    assert chain_of(JavaException("hadoop.FSError: java.io.IOException: No space left on device", full)) == (
        "hadoop.FSError: java.io.IOException: No space left on device"
    )
    assert chain_of(JavaException("outer", full)) == "outer\nCaused by: java.io.IOException: No space left on device"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["1000000:0,", "--secret", "password", "password='", "://a:", "x", "\n"])
def test_a_message_of_a_megabyte_takes_no_time(piece: str) -> None:
    """While passwords were looked for in 40 kB of it, no other thread of the driver ran for 8 s, and the time grew with the square."""
    told = f"java.lang.RuntimeException: refused rows: {piece * 100_000}"
    assert len(cause_first(f"terminated with exception: {told}")) <= 4000
    assert cause_first(f"{told}.").endswith("…")


def test_a_password_where_a_long_message_is_cut_is_not_told() -> None:
    for length in range(900, 1000):
        told = cause_first(f"{'.' * length} https://me:hunter2@db {'-' * 5000}")
        assert "hunter" not in told
        assert len(told) <= 1000
    assert "hunter" not in cause_first(f"{'.' * 2993}https://me:hunter2@db")
    key = f"private secret='{'hunter2 ' * 400}', b"
    for told in (cause_first(f"{key}{'-' * 5000}"), cause_first(f"{'.' * 500} {key}"), cause_first(key)):
        assert "hunter" not in told
        assert "secret=*********(redacted)" in told
