"""``python -m spark_drain_agent``; also a SparkApplication's mainApplicationFile, by path."""

import sys
from pathlib import Path

if __package__ in (None, ""):
    # Started by path, Python puts this folder first: its module names (journal, plan ...) must not shadow the application's.
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]

from spark_drain_agent.cli.run_script import main

if __name__ == "__main__" and (code := main()):  # at 0 Python may be told to stay, by -i
    sys.exit(code)
