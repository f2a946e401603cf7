"""What becomes of the cached and shuffled blocks of an executor that is replaced (pure)."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["blocks_note"]

_DECOMMISSION, _STORAGE = "spark.decommission.enabled", "spark.storage.decommission.enabled"
_KINDS = {"cached": "spark.storage.decommission.rddBlocks.enabled", "shuffled": "spark.storage.decommission.shuffleBlocks.enabled"}


def blocks_note(confs: Mapping[str, str], *, forced: bool) -> str:
    """Return whether blocks move to other executors before the old one ends, and what it costs where they do not.

    Parameters
    ----------
    confs
        Those of Spark that have to do with decommissioning.
    forced
        Whether the executor is ended at once.
    """
    missing = [name for name in (_DECOMMISSION, _STORAGE) if not _set(confs, name, "false")]
    moved = [] if forced or missing else [kind for kind, name in _KINDS.items() if _set(confs, name, "true")]
    lost = [kind for kind in _KINDS if kind not in moved]
    told = [f"{' and '.join(moved)} blocks are moved to other executors before it ends"] if moved else []
    if lost:
        why = "" if forced else f" ({', '.join(missing or [_KINDS[kind] for kind in lost])} is not true)"
        told.append(f"{' and '.join(lost)} blocks go with it, and are computed again where they are needed{why}")
    return ", ".join(told)


def _set(confs: Mapping[str, str], name: str, default: str) -> bool:
    return confs.get(name, default).lower() == "true"
