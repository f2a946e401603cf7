"""The environment variables, Spark confs and files that a program reads, as far as they are the same at each start of one version."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from spark_drain_agent.spark_internals.configuration_files import configuration_files
from spark_drain_agent.spark_internals.run_texts import is_secret, without_ids
from spark_drain_agent.spark_internals.spark_confs import is_named, spark_confs

__all__ = ["surroundings"]

_OF_ONE_START = re.compile(
    r"_|HOST(NAME)?|(OLD)?PWD|SHLVL|TERM|COLUMNS|LINES|SSH_(AUTH_SOCK|CLIENT|CONNECTION|TTY)|PYTHONHASHSEED|JOURNAL_STREAM"
    r"|TE?MP(DIR)?|RANDOM|CONTAINER_ID|JVM_PID|LOCAL_(USER_)?DIRS|LOG_DIRS|NM_(HOST|PORT|HTTP_PORT|AUX_SERVICE_\w+)"
    r"|(MY_)?(POD|NODE|HOST)_?(NAME|IPS?|UID|ID)|KUBERNETES_\w+|\w+_SERVICE_(HOST|PORT(_\w+)?)|\w+_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?"
    r"|SPARK_(APPLICATION_ID|AUTH_\w+|DRIVER_\w+|ENV_LOADED|EXECUTOR_\w+|JAVA_OPT_\w+|LOCAL_\w+|PUBLIC_DNS|YARN_\w+)|PYSPARK_GATEWAY_\w+"
)
"""What shells, Kubernetes, YARN and Spark set, and the usual names for what a pod is told of itself."""
_SERVICE_LINK = re.compile(r"(tcp|udp|sctp)://[\d.:a-f\[\]]+")
"""What Kubernetes gives to NAME_PORT, for a service of that name."""


def surroundings(texts: Collection[str], file: str) -> Iterator[str]:
    """Yield the variables, Spark confs and configuration files that the source of a module names, with their values and digests.

    Parameters
    ----------
    texts
        Constants of the source. What a variable or conf holds may be the name of a file, too.
    file
        The module's, beside which files may be.
    """
    named = frozenset(texts)
    found = {name: os.environ[name] for name in named & {*os.environ} if _counts(name, os.environ[name])}
    found |= {name: value for name, value in spark_confs().items() if is_named(name, named) and not is_secret(name)}
    yield from (f"{name}={without_ids(found[name])}" for name in sorted(found))
    yield from configuration_files([*texts, *found.values()], [Path(file).parent])


def _counts(name: str, value: str) -> bool:
    of_one_start = _OF_ONE_START.fullmatch(name) or (name.endswith("_PORT") and _SERVICE_LINK.fullmatch(value))
    return not of_one_start and not is_secret(name)
