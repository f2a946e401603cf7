"""The environment variables that a program reads, as far as they are the same at each start of one version."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator

from spark_drain_agent.spark_internals.run_texts import is_secret, without_ids

__all__ = ["variables"]

_OF_ONE_START = re.compile(
    r"_|HOST(NAME)?|(OLD)?PWD|SHLVL|TE?MP(DIR)?|RANDOM|(CONTAINER|GATEWAY|JVM|NM|LOCAL|LOG)_\w+"
    r"|(MY_)?(POD|NODE|HOST)_?(NAME|IPS?|UID|ID)|KUBERNETES_\w+|\w+_SERVICE_(HOST|PORT(_\w+)?)|\w+_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?"
    r"|SPARK_(APPLICATION_ID|AUTH_\w+|DRIVER_\w+|ENV_LOADED|EXECUTOR_\w+|JAVA_OPT_\w+|LOCAL_\w+|PUBLIC_DNS|YARN_\w+)|PYSPARK_GATEWAY_\w+"
)
"""What shells, Kubernetes, YARN and Spark set, and the usual names for what a pod is told of itself."""
_SERVICE_LINK = re.compile(r"(tcp|udp|sctp)://[\d.:a-f\[\]]+")
"""What Kubernetes gives to NAME_PORT, for a service of that name."""


def variables(names: Collection[str]) -> Iterator[str]:
    """Yield each of these variables that is set, with its value, in the order of their names."""
    for name in sorted({*names} & {*os.environ}):
        value = os.environ[name]
        if not (_OF_ONE_START.fullmatch(name) or is_secret(name) or (name.endswith("_PORT") and _SERVICE_LINK.fullmatch(value))):
            yield f"{name}={without_ids(value)}"
