"""What a drain was asked to do: the flat options of a notification, parsed and checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

__all__ = ["MODES", "OPTIONS", "DrainOptions", "Option", "UnsupportedOptionError", "join_names", "named_values"]

MODES = ("Drain", "CatchUp", "Stop")
"""Drain modes; Samza's DEFAULT is ``Drain``."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option of a notification, as it is checked and documented.

    Parameters
    ----------
    name
        That of the PipelineDrain's spec, with a dot where the spec nests.
    description
        What it decides.
    values
        What can be chosen; empty where any text is a value.
    placeholder
        With any text: what the text is.
    default
        What holds where it is left out: one of the values, or what happens then.
    with_stop
        Whether it may be set with mode Stop.
    """

    name: str
    description: str
    values: tuple[str, ...] = ()
    placeholder: str = ""
    default: str
    with_stop: bool = True


OPTIONS = (
    Option(
        name="queries",
        description="which queries are drained; with some of them `afterDrain` must be `Keep`",
        placeholder="names, separated by commas, or a JSON array of names",
        default="all",
    ),
    Option(
        name="incompleteWindows.policy",
        description="what becomes of windows that are open: to the query's sink, to a folder of their own, or nowhere",
        values=("Emit", "SideOutput", "Discard"),
        default="Emit",
        with_stop=False,
    ),
    Option(
        name="incompleteWindows.sideOutput.path",
        description="with `SideOutput`: the folder, below one of `spark.sparkdrain.allowedPaths`",
        placeholder="a Hadoop URI",
        default="required with `SideOutput`",
        with_stop=False,
    ),
    Option(
        name="incompleteWindows.sideOutput.format",
        description="with `SideOutput`: the format of the folder, one of Spark's file formats (`parquet`, `orc`, `json`, ...) or `delta`",
        placeholder="a format",
        default="parquet",
        with_stop=False,
    ),
    Option(
        name="checkpoint.policy",
        description="how the checkpoint is left for the next version",
        values=("Auto", "Reseed", "Continue", "Keep"),
        default="Auto",
        with_stop=False,
    ),
    Option(
        name="checkpoint.acceptBatchIdRestart",
        description="with `Reseed`: whether batch ids may start again at 0",
        values=("true", "false"),
        default="false",
        with_stop=False,
    ),
    Option(
        name="checkpoint.retainArchives",
        description="how many generations are kept below `_drain/`",
        placeholder="a whole number",
        default="all are kept",
        with_stop=False,
    ),
    Option(
        name="stateLossPolicy",
        description="whether a drain may forget state that an infinite watermark does not emit",
        values=("Refuse", "Accept"),
        default="Refuse",
    ),
    Option(
        name="stateExport.path",
        description="where keyed state is written before it is flushed, below one of `spark.sparkdrain.allowedPaths`",
        placeholder="a Hadoop URI",
        default="no export",
    ),
    Option(
        name="execution",
        description="carry the plan out at once, once it is approved, or only report it",
        values=("Immediate", "AfterApproval", "PlanOnly"),
        default="Immediate",
    ),
    Option(
        name="afterDrain",
        description="what becomes of the application; the agent only looks for `Keep`, with which the application goes on",
        values=("Suspend", "Restart", "Delete", "Keep"),
        default="Suspend",
    ),
)
"""Every option that there is, in the order of the PipelineDrain's spec."""

_OPTIONS: Mapping[str, Option] = {option.name: option for option in OPTIONS}
_ARGUMENTS = {"mode": "--mode", "runId": "--run-id"}
_SIDE_OUTPUT = ("incompleteWindows.sideOutput.path", "incompleteWindows.sideOutput.format")
_RESTART = "checkpoint.acceptBatchIdRestart"


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
    accept_batch_id_restart
        With ``Reseed``: whether the next version's batch ids may start again at 0.
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
    accept_batch_id_restart: bool = False
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
        for name, value in options.items():
            _check(mode, name, value)
        if options.get(_RESTART) == "true" and options.get("checkpoint.policy") != "Reseed":
            raise UnsupportedOptionError(
                f"option {_RESTART!r} may only be true when 'checkpoint.policy' is Reseed, not {_chosen('checkpoint.policy', options)}"
            )
        incomplete_windows = _chosen("incompleteWindows.policy", options)
        _check_side_output(incomplete_windows, options)
        return cls(
            mode=mode,
            queries=_names(options.get("queries")),
            incomplete_windows=incomplete_windows,
            side_output_path=options.get("incompleteWindows.sideOutput.path"),
            side_output_format=_chosen("incompleteWindows.sideOutput.format", options),
            checkpoint_policy=_chosen("checkpoint.policy", options),
            accept_batch_id_restart=_chosen(_RESTART, options) == "true",
            retain_archives=_count("checkpoint.retainArchives", options.get("checkpoint.retainArchives")),
            state_loss_policy=_chosen("stateLossPolicy", options),
            state_export_path=options.get("stateExport.path"),
            execution=_chosen("execution", options),
            after_drain=_chosen("afterDrain", options),
        )

    def described(self) -> dict[str, str]:
        """Return every option with its resolved value, for plans and status."""
        return {field.name: str(getattr(self, field.name)) for field in fields(self)}


def _chosen(name: str, options: Mapping[str, str]) -> str:
    return options.get(name, _OPTIONS[name].default)


def _check(mode: str, name: str, value: str) -> None:
    if name not in _OPTIONS:
        hint = f"; it is given by {_ARGUMENTS[name]}" if name in _ARGUMENTS else ""
        raise UnsupportedOptionError(f"option {name!r} (value {value!r}) is not known; known are {', '.join(sorted(_OPTIONS))}{hint}")
    option = _OPTIONS[name]
    if option.values and value not in option.values:
        raise UnsupportedOptionError(f"option {name!r} must be one of {', '.join(option.values)}, not {value!r}")
    if name in (*_SIDE_OUTPUT, "stateExport.path") and not value.strip():
        raise UnsupportedOptionError(f"option {name!r} must not be empty")
    if mode == "Stop" and not option.with_stop:
        raise UnsupportedOptionError(
            f"option {name!r} (value {value!r}) must be absent with mode Stop, which keeps state and checkpoint as they are"
        )


def _check_side_output(policy: str, options: Mapping[str, str]) -> None:
    path, *_ = _SIDE_OUTPUT
    if policy == "SideOutput" and path not in options:
        raise UnsupportedOptionError(f"option {path!r} must be set when 'incompleteWindows.policy' is SideOutput")
    for name in _SIDE_OUTPUT:
        if policy != "SideOutput" and name in options:
            raise UnsupportedOptionError(
                f"option {name!r} (value {options[name]!r}) must be absent unless 'incompleteWindows.policy' is SideOutput, not {policy}"
            )


def join_names(names: Iterable[str]) -> str:
    """Return the value of option ``queries`` for these names: separated by commas, or a JSON array where that would change them."""
    names = list(names)
    joined = ",".join(names)
    return joined if _split(joined) == names and not joined.startswith("[") else json.dumps(names)


def _split(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


def _names(value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    names: object = _split(value)
    if value.lstrip().startswith("["):
        try:
            names = json.loads(value)
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            raise UnsupportedOptionError(
                f"option 'queries' must be names separated by commas, or a JSON array of names, not {value[:80]!r}"
            )
    assert isinstance(names, list)
    if not names:
        raise UnsupportedOptionError("option 'queries' must name at least one query, or be absent to mean all")
    return tuple(names)


def _count(name: str, value: str | None) -> int | None:
    if value is None:
        return None
    if not re.fullmatch("[0-9]{1,9}", value):
        raise UnsupportedOptionError(f"option {name!r} must be a whole number from 0 to 999999999, not {value!r}")
    return int(value)


def named_values(flag: str, pairs: Iterable[str], form: str = "NAME=VALUE") -> dict[str, str]:
    """Read the NAME=VALUE texts of a command's repeatable flag; raises `UnsupportedOptionError`."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UnsupportedOptionError(f"{flag} {pair!r} must be {form}")
        if values.setdefault(name, value) != value:
            raise UnsupportedOptionError(f"{flag} {name!r} is given twice, as {values[name]!r} and as {value!r}: give it once")
    return values
