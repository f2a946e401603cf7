"""What a drain was asked to do: the flat options of a notification, parsed and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

__all__ = ["MODES", "DrainOptions", "UnsupportedOptionError"]

MODES = ("Drain", "CatchUp", "Stop")
"""Drain modes; Samza's DEFAULT is ``Drain``."""

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "incompleteWindows.policy": ("Emit", "SideOutput", "Discard"),
    "checkpoint.policy": ("Auto", "Reseed", "Continue", "Keep"),
    "stateLossPolicy": ("Refuse", "Accept"),
    "execution": ("Immediate", "AfterApproval", "PlanOnly"),
    "afterDrain": ("Suspend", "Delete", "Keep"),
}
_SIDE_OUTPUT = ("incompleteWindows.sideOutput.path", "incompleteWindows.sideOutput.format")
_NOT_WITH_STOP = ("incompleteWindows.policy", *_SIDE_OUTPUT, "checkpoint.policy", "checkpoint.retainArchives")
_TEXTS = (*_SIDE_OUTPUT, "stateExport.path")


class UnsupportedOptionError(ValueError):
    """A drain option has an unknown name, a value outside of its choices, or one that this version cannot carry out."""


@dataclass(frozen=True, kw_only=True)
class DrainOptions:
    """The options of one drain, defaults resolved.

    Option names are those of the PipelineDrain's spec, with a dot where the spec nests.

    Parameters
    ----------
    mode
        One of `MODES`.
    queries
        Names of the queries to drain; None is all of them.
    incomplete_windows
        ``Emit``, ``SideOutput`` or ``Discard``; not with mode Stop.
    side_output_path, side_output_format
        With ``SideOutput``: the folder for the incomplete windows and the format of Spark's DataFrameWriter.
    checkpoint_policy
        ``Auto``, ``Reseed``, ``Continue`` or ``Keep``; not with mode Stop.
    retain_archives
        How many generations to keep under ``_drain``; None keeps all.
    state_loss_policy
        ``Refuse`` or ``Accept``.
    state_export_path
        Folder to which keyed state is written before it is flushed; None writes none.
    execution
        ``Immediate``, ``AfterApproval`` or ``PlanOnly``.
    after_drain
        ``Suspend``, ``Delete`` or ``Keep``: what becomes of the application; only ``Keep`` matters to the agent.
    """

    mode: str = "Drain"
    queries: tuple[str, ...] | None = None
    incomplete_windows: str = "Emit"
    side_output_path: str | None = None
    side_output_format: str = "parquet"
    checkpoint_policy: str = "Auto"
    retain_archives: int | None = None
    state_loss_policy: str = "Refuse"
    state_export_path: str | None = None
    execution: str = "Immediate"
    after_drain: str = "Suspend"

    @classmethod
    def parse(cls, mode: str, options: Mapping[str, str]) -> DrainOptions:
        """Read the options of a notification.

        Raises
        ------
        UnsupportedOptionError
            A name is unknown, a value is not one of its choices, or the combination makes no sense.
        """
        if mode not in MODES:
            raise UnsupportedOptionError(f"mode {mode!r} must be one of {', '.join(MODES)}")
        known = {*_CHOICES, *_TEXTS, "queries", "checkpoint.retainArchives"}
        for name, value in options.items():
            if name not in known:
                raise UnsupportedOptionError(f"option {name!r} (value {value!r}) is not known; known are {', '.join(sorted(known))}")
            if name in _CHOICES and value not in _CHOICES[name]:
                raise UnsupportedOptionError(f"option {name!r} must be one of {', '.join(_CHOICES[name])}, not {value!r}")
            if name in _TEXTS and not value.strip():
                raise UnsupportedOptionError(f"option {name!r} must not be empty")
            if mode == "Stop" and name in _NOT_WITH_STOP:
                raise UnsupportedOptionError(
                    f"option {name!r} (value {value!r}) must be absent with mode Stop, which keeps state and checkpoint as they are"
                )
        incomplete_windows = options.get("incompleteWindows.policy", "Emit")
        _check_side_output(incomplete_windows, options)
        return cls(
            mode=mode,
            queries=_names(options.get("queries")),
            incomplete_windows=incomplete_windows,
            side_output_path=options.get("incompleteWindows.sideOutput.path"),
            side_output_format=options.get("incompleteWindows.sideOutput.format", "parquet"),
            checkpoint_policy=options.get("checkpoint.policy", "Auto"),
            retain_archives=_count("checkpoint.retainArchives", options.get("checkpoint.retainArchives")),
            state_loss_policy=options.get("stateLossPolicy", "Refuse"),
            state_export_path=options.get("stateExport.path"),
            execution=options.get("execution", "Immediate"),
            after_drain=options.get("afterDrain", "Suspend"),
        )

    def described(self) -> dict[str, str]:
        """Return every option with its resolved value, for plans and status."""
        return {field.name: str(getattr(self, field.name)) for field in fields(self)}


def _check_side_output(policy: str, options: Mapping[str, str]) -> None:
    path, *_ = _SIDE_OUTPUT
    if policy == "SideOutput" and path not in options:
        raise UnsupportedOptionError(f"option {path!r} must be set when 'incompleteWindows.policy' is SideOutput")
    for name in _SIDE_OUTPUT:
        if policy != "SideOutput" and name in options:
            raise UnsupportedOptionError(
                f"option {name!r} (value {options[name]!r}) must be absent unless 'incompleteWindows.policy' is SideOutput, not {policy}"
            )


def _names(value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    if not names:
        raise UnsupportedOptionError("option 'queries' must name at least one query, or be absent to mean all")
    return names


def _count(name: str, value: str | None) -> int | None:
    if value is None:
        return None
    if not re.fullmatch("[0-9]{1,9}", value):
        raise UnsupportedOptionError(f"option {name!r} must be a whole number, not {value!r}")
    return int(value)
