"""Main file for spark-submit: the drain agent runs the program whose path and arguments follow.

The same as ``python -m spark_drain_agent PROGRAM ARGUMENTS``, for spark-submit, which takes files only.
"""

import runpy

runpy.run_module("spark_drain_agent", run_name="__main__", alter_sys=True)
