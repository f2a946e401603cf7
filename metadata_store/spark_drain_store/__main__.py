"""``python -m spark_drain_store``: see `spark_drain_store.cli`."""

import sys

from spark_drain_store.cli import main

sys.exit(main())
