"""Runs examples of the pyspark package one after the other, each as `python -m spark_drain_agent` would, in one JVM.

Usage: examples.py BASE STORE NAME,ARGUMENT,... NAME,...
"""

import sys
import traceback
from pathlib import Path

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession
from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.cli.run_script import main

FOLDER = Path(pyspark.__path__[0]) / "examples/src/main/python/sql/streaming"

store = sys.argv[2]
for example in sys.argv[3:]:
    name, *arguments = example.split(",")
    print(f"begin {name}", flush=True)
    try:
        code = main(["--metadata-store", store, str(FOLDER / name), *arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    except Exception:  # what the example raised, as Python shows it
        traceback.print_exc()
        code = 1
    print(f"end {name} {code}", flush=True)
    with as_agent():
        context = SparkContext._active_spark_context
        assert context is not None
        context.stop()
        SparkSession._instantiatedSession = None
