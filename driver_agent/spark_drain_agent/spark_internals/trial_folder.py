"""A folder beside the one that is meant, in which a write is tried."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from spark_drain_agent.spark_internals.errors import JavaError, in_words
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["UnwritableFolderError", "trial_folder"]


class UnwritableFolderError(Exception):
    """No folder can be made there; the message says why."""


@contextmanager
def trial_folder(internals: SparkInternals, folder: str) -> Iterator[str]:
    """Make a folder of another name beside one that need not be there, and remove it again with all that was missing above it.

    Parameters
    ----------
    internals
        Access to Spark.
    folder
        URI of what is meant.

    Raises
    ------
    UnwritableFolderError
        It cannot be made.
    """
    made = []
    try:
        trial = internals.jvm.org.apache.hadoop.fs.Path(f"{folder.rstrip('/')}.trial-{uuid.uuid4()}")
        filesystem = trial.getFileSystem(internals.hadoop_conf())
        try:
            above = trial.getParent()
            while above is not None and not filesystem.exists(above):
                made.append(above)
                above = above.getParent()
            if not filesystem.mkdirs(trial):
                raise UnwritableFolderError(
                    f"a folder beside it cannot be made, for which the driver may lack the permission: {trial.toString()}"
                )
            yield str(trial.toString())
        finally:
            filesystem.delete(trial, True)
            for above in made:
                with suppress(*JavaError):  # another has put something there
                    filesystem.delete(above, False)
    except JavaError as error:
        raise UnwritableFolderError(in_words(error)) from error
