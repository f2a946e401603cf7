"""The Spark configuration that the application was submitted with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from pyspark import SparkContext

__all__ = ["is_named", "spark_confs"]

_OF_ONE_START = re.compile(
    r"spark\.(app\.(id|startTime|submitTime|attempt\w*|initial\..*)|driver\.(host|port|bindAddress|appUIAddress)|executor\.id|local\.dir"
    r"|(kubernetes|org|repl|sparkdrain|submit|ui|yarn)\..*)"
)
"""What says where a run is, and what whoever submits it makes anew."""
_OF_EXECUTORS = "spark.executorEnv."


def spark_confs() -> Mapping[str, str]:
    """Return the entries of the active context, without those of one start: as they were when it was made."""
    context = SparkContext._active_spark_context
    return {} if context is None else _entries(context)


def is_named(conf: str, texts: frozenset[str]) -> bool:
    """Return whether one of these texts is the name of an entry, or that of the environment variable which it gives to executors."""
    return conf in texts or conf.removeprefix(_OF_EXECUTORS) in texts


@lru_cache(maxsize=1)
def _entries(context: SparkContext) -> Mapping[str, str]:
    return {name: value for name, value in context._conf.getAll() if not _OF_ONE_START.fullmatch(name)}
