"""What ends a drain out of turn, one per module: looked at before the steps, in every pass."""

from spark_drain_operator.kinds.drain.interrupts import force_stop, verdict, withdraw

__all__ = ["INTERRUPTS"]

INTERRUPTS = (verdict.run, withdraw.run, force_stop.run)
