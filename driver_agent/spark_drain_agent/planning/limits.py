"""How the limits of a stream are planned in a batch without input, as the flush is, so that it has the ones that the batches before had.

Spark leaves a limit out of a batch in which nothing comes to it, unless a watermark hides that from the optimizer, and makes one of two.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NO_LIMITS", "Limits"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How many limits with state there are in which plan of a query.

    Parameters
    ----------
    in_batches
        In the batch before; None where that is not known.
    in_state
        That have state in the checkpoint; None where that is not known.
    without_input
        In a batch that reads nothing.
    kept
        In such a batch, where the optimizer is told to keep them.
    """

    in_batches: int | None = 0
    in_state: int | None = None
    without_input: int = 0
    kept: int = 0

    @property
    def keeps(self) -> bool:
        """Whether the optimizer is to be told."""
        return self.in_batches != self.without_input

    @property
    def obstacle(self) -> str:
        """Why the flush cannot have the limits of the batch before, or ""."""
        if self.in_state not in (None, self.in_batches):
            return (
                f"{self.in_state} limits with state, of which the last batch had {self.in_batches}: no batch can go on with a state that "
                "has a gap, and Spark cannot start the query again either; leave out limits of sources without records"
            )
        if self.in_batches not in (None, self.without_input, self.kept):
            return (
                f"{self.in_batches} limits with state in its batches, and {self.without_input} or {self.kept} in one without input, as the "
                "last one of a drain is; write a limit over a limit as one, leave out those of sources without records"
            )
        return ""


NO_LIMITS = Limits()
"""Of a query without limits, or none that Spark leaves out of a batch."""
