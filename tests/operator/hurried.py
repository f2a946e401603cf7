"""The operator with short waits: ``hurried.py ARGUMENT...``. What it does by itself after seconds it does sooner; what an event wakes it
for it does as ever. Tests of its own pace, of its requests and of its deaths run it as it is.
"""

import sys

from spark_drain_operator.cli import main
from spark_drain_operator.kinds.drain.steps import confirm_executors, keep_result, scale_down
from spark_drain_operator.kinds.drain.steps import request as drain_request
from spark_drain_operator.kinds.placement.steps import request as placement_request
from spark_drain_operator.maintenance import budgets, decide, watch

confirm_executors._RECHECK_SECONDS = keep_result._RECHECK_SECONDS = 0.5
scale_down._POLL_SECONDS = drain_request._POLL_SECONDS = placement_request._POLL_SECONDS = 0.2
watch._POLL_SECONDS, watch._IDLE_SECONDS, decide._RETRY_SECONDS, budgets._AGAIN_SECONDS = 0.5, 5.0, 2, 2.0
sys.exit(main(sys.argv[1:]))
