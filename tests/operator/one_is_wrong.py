"""The operator behind three API servers, the clock of one of which is wrong: ``one_is_wrong.py SECONDS ARGUMENT...``."""

import itertools
import sys
from email.utils import formatdate, parsedate_to_datetime

from spark_drain_operator.cli import main
from spark_drain_operator.clock import ServerClock

right, turns = ServerClock.tell, itertools.cycle([0.0, float(sys.argv[1]), 0.0])


def tell(self: ServerClock, date: str, asked: float, answered: float) -> None:
    right(self, formatdate(parsedate_to_datetime(date).timestamp() + next(turns), usegmt=True), asked, answered)


ServerClock.tell = tell  # type: ignore[method-assign]
sys.exit(main(sys.argv[2:]))
