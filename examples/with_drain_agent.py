"""Main file for spark-submit: the drain agent runs the program whose path and arguments follow.

The same as ``python -m spark_drain_agent PROGRAM ARGUMENTS``, for spark-submit, which takes files only.
"""

import sys

from spark_drain_agent.cli.run_script import main

if code := main():
    sys.exit(code)
