"""What becomes of the PersistentVolumeClaims that Spark makes for its executors, when one of them is replaced (pure)."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["claims_exhausted", "claims_note"]

_VOLUMES = "spark.kubernetes.executor.volumes.persistentVolumeClaim."
_CLAIM_NAME = ".options.claimName"
_OF_EACH_EXECUTOR = ("OnDemand", "SPARK_EXECUTOR_ID")
_LOCAL = "spark-local-dir-"
_OWN, _REUSE, _WAIT = (f"spark.kubernetes.driver.{name}PersistentVolumeClaim" for name in ("own", "reuse", "waitToReuse"))
_DRIVER_POD = "spark.kubernetes.driver.pod.name"
_DEFAULTS = {_OWN: "true", _REUSE: "true", _WAIT: "false"}


def claims_note(confs: Mapping[str, str]) -> str:
    """Return what happens to the claims of an executor that is replaced, or "" where Spark makes none.

    Parameters
    ----------
    confs
        Those of Spark that have to do with Kubernetes.
    """
    names = sorted(_made(confs))
    if not names:
        return ""
    told = f"the new executor does not get the volumes of the old one ({', '.join(names)})"
    if any(name.startswith(_LOCAL) for name in names):
        told += ": shuffled and cached blocks that were not moved before are computed again, and state is read from the checkpoint"
    if not _owned(confs):
        return f"{told}; the old claims go with their pod"
    if not _set(confs, _REUSE):
        return f"{told}; the old claims stay until the driver's pod goes, and nothing uses them any more ({_REUSE} is false)"
    return f"{told}; the old claims stay for executors that Spark makes later, which can run only where their volumes can be mounted"


def claims_exhausted(confs: Mapping[str, str], *, executors: int, most: int) -> str:
    """Return why Spark makes no executor beside those that there are, or "".

    Parameters
    ----------
    confs
        As in `claims_note`.
    executors
        How many there are.
    most
        Up to how many Spark makes claims (spark.executor.instances, with dynamic allocation its maxExecutors).
    """
    waits = _made(confs) and _owned(confs) and _set(confs, _REUSE) and _set(confs, _WAIT)
    if not waits or executors < most:
        return ""
    return (
        f"with {_WAIT} Spark makes no executor while {most} have claims, so the old one has to end first: "
        "ask for FORCE_RESTART_LAST_SEEN, or set it to false"
    )


def _made(confs: Mapping[str, str]) -> list[str]:
    """Return the names of the volumes whose claims Spark makes: each executor has its own, of a storage class and size."""
    volumes = {name.removeprefix(_VOLUMES).partition(".")[0] for name in confs if name.startswith(_VOLUMES)}
    return [
        name
        for name in volumes
        if any(part in confs.get(f"{_VOLUMES}{name}{_CLAIM_NAME}", "") for part in _OF_EACH_EXECUTOR)
        and all(f"{_VOLUMES}{name}.options.{option}" in confs for option in ("storageClass", "sizeLimit"))
    ]


def _owned(confs: Mapping[str, str]) -> bool:
    """Return whether the driver's pod owns them, which Spark has to know for that."""
    return _DRIVER_POD in confs and _set(confs, _OWN)


def _set(confs: Mapping[str, str], name: str) -> bool:
    return confs.get(name, _DEFAULTS[name]).lower() == "true"
