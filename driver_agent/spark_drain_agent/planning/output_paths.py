"""Folders that a drain writes with the driver's credentials: only where the application's owner allows it, never over what is there."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

from spark_drain_store import DrainOptions, reasons

from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.planning.plan import PlanRejectedError
from spark_drain_agent.spark_internals.errors import JavaError, in_words
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["ALLOWED_PATHS", "below", "check_names", "check_outputs", "query_folder"]

ALLOWED_PATHS = "spark.sparkdrain.allowedPaths"
"""Conf of the application: URIs, comma separated, below which a drain may write."""

_LONGEST_NAME = 200
"""Characters; filesystems take 255 bytes."""


def below(path: str, folders: Sequence[str]) -> bool:
    """Return whether a qualified path lies in one of the folders; it is not one of them, as a drain first tries a format beside it.

    A path with ``..`` in it lies nowhere: filesystems differ in what they make of it.
    """
    if ".." in path.split("/"):
        return False
    return any(path.rstrip("/").startswith(f"{folder.rstrip('/')}/") for folder in folders)


def query_folder(root: str, query_name: str, query_id: str) -> str:
    """Return the folder of one query below the folder that the request names, since two queries have two schemas.

    A name that no filesystem takes for a folder's is encoded further, or cut and made unique by a digest.
    """
    name = quote(query_name, safe="") or f"query-{query_id}"
    if name.startswith((".", "_")):  # what Spark and Hadoop take for hidden, and what is no name at all
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(query_name.encode()).hexdigest()[:16]}"
    return f"{root.rstrip('/')}/{name}"


def check_names(options: DrainOptions, names: Sequence[str]) -> None:
    """Refuse queries of one name, as two sessions may have, where each would write to a folder of that name.

    Raises
    ------
    PlanRejectedError
        With reason ``UnsupportedOption``.
    """
    twice = sorted(name for name, count in Counter(names).items() if name and count > 1)
    if twice and (options.side_output_path is not None or options.state_export_path is not None):
        raise PlanRejectedError(
            reasons.UNSUPPORTED_OPTION,
            f"several queries are named {', '.join(map(repr, twice))} and would share a folder below incompleteWindows.sideOutput.path or "
            "stateExport.path: give each a name of its own",
        )


def check_outputs(options: DrainOptions, internals: SparkInternals) -> None:
    """Refuse folders that are not allowed or exist already; nothing is written.

    Raises
    ------
    PlanRejectedError
        With reason ``PathNotAllowed`` or ``PathExists``.
    """
    asked = {
        "incompleteWindows.sideOutput.path": options.side_output_path,
        "stateExport.path": options.state_export_path,
    }
    paths = {name: _qualified(name, path, internals) for name, path in asked.items() if path is not None}
    if not paths:
        return
    setting = internals.conf(ALLOWED_PATHS)
    allowed = [folder for part in setting.split(",") if part.strip() and (folder := _reachable(part.strip(), internals))]
    for name, path in paths.items():
        if not below(path, allowed):
            raise PlanRejectedError(
                reasons.PATH_NOT_ALLOWED,
                f"{name} {path} is not below {f'any of {setting}' if allowed else 'an allowed path'}, and a drain writes with the driver's "
                f"credentials: start the application with {ALLOWED_PATHS} set to a folder above it",
            )
        if any(path == other or below(path, [other]) for key, other in paths.items() if key != name):
            raise PlanRejectedError(
                reasons.PATH_NOT_ALLOWED, f"{' and '.join(paths)} must not contain each other: {' and '.join(paths.values())}"
            )
        output = CheckpointFiles(internals, path)
        if output.is_folder("") or output.is_file(""):
            raise PlanRejectedError(reasons.PATH_EXISTS, f"{name} {path} exists already: name a folder that does not, or remove it")


def _reachable(path: str, internals: SparkInternals) -> str:
    """Return a qualified path, or "" where it is on no filesystem that the driver can reach, and so is none of a folder's."""
    try:
        return internals.qualified(path)
    except JavaError:
        return ""


def _qualified(name: str, path: str, internals: SparkInternals) -> str:
    try:
        return internals.qualified(path)
    except JavaError as error:
        raise PlanRejectedError(
            reasons.PATH_NOT_ALLOWED, f"{name} {path!r} is on no filesystem that the driver can reach: {in_words(error)}"
        ) from error
