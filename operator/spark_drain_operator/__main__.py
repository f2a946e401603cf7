"""``python -m spark_drain_operator``."""

import sys

from spark_drain_operator.cli import main

sys.exit(main())
