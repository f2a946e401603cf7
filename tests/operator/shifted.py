"""The operator on a machine whose clock is wrong: ``shifted.py SECONDS ARGUMENT...``."""

import sys
import time

from spark_drain_operator.cli import main

right = time.time
time.time = lambda: right() + float(sys.argv[1])
sys.exit(main(sys.argv[2:]))
