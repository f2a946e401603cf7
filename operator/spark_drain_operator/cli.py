"""The operator's command line."""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import sys
from collections.abc import Sequence

from spark_drain_store.kube_client import ApiUnavailableError
from spark_drain_store.one_line import one_line

from spark_drain_operator.settings import NodeSettings, Settings
from spark_drain_operator.storage.access import NotServedError

__all__ = ["OneLine", "main", "parse"]

_PACKAGES = ("kopf", "kubernetes", "yaml")
_LONGEST_SECONDS = 86_400
"""That a node may have, as the chart's values say."""
_LOG_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class OneLine(logging.Formatter):
    """Escapes control characters: messages have words of agents and of the API server in them, and each is one line of the log."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        """See `logging.Formatter.formatMessage`; a traceback follows later."""
        return one_line(super().formatMessage(record))


def parse(arguments: Sequence[str] | None = None) -> tuple[Settings, argparse.Namespace]:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m spark_drain_operator",
        description="Drain Structured Streaming applications as PipelineDrain objects say.",
        epilog="evacuate NODE clears a node of SparkApplications instead; see evacuate --help.",
    )
    parser.add_argument("--namespaces", default="", metavar="A,B", help="watch only these namespaces; default: the whole cluster")
    parser.add_argument("--allow-delete", action="store_true", help="allow spec.afterDrain Delete")
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="drains reconciled at the same time; default 4")
    parser.add_argument("--resync-seconds", type=float, default=30.0, metavar="S", help="look at waiting drains this often; default 30")
    _add_nodes(parser)
    parser.add_argument("--liveness", metavar="URL", help="serve liveness, for example http://0.0.0.0:8080/healthz")
    parser.add_argument("--log-level", default="INFO", choices=["DEBUG", "INFO", "WARNING", "ERROR"])
    options = parser.parse_args(arguments)
    if options.workers < 1:
        parser.error(f"--workers must be at least 1, not {options.workers}")
    if not 1 <= options.resync_seconds <= _LONGEST_SECONDS:
        parser.error(f"--resync-seconds must be from 1 to {_LONGEST_SECONDS}, not {options.resync_seconds:g}")
    if options.liveness is not None and not re.match(r"http://[^/]+:\d+/", options.liveness):
        parser.error(f"--liveness {options.liveness!r} is not a URL such as http://0.0.0.0:8080/healthz")
    namespaces = tuple(name.strip() for name in options.namespaces.split(",") if name.strip())
    for name in namespaces:
        if not re.fullmatch("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
            parser.error(f"--namespaces: {name!r} is no name of a namespace: lower case letters, digits and '-', as in spark-jobs")
    settings = Settings(
        namespaces=namespaces,
        allow_delete=options.allow_delete,
        workers=options.workers,
        resync_seconds=options.resync_seconds,
        nodes=_nodes(parser, options),
    )
    return settings, options


def _add_nodes(parser: argparse.ArgumentParser) -> None:
    default = NodeSettings()
    nodes = parser.add_argument_group("nodes", 'moves applications with the annotation sparkdrain.io/evacuate: "true" off nodes')
    nodes.add_argument("--node-watch", action="store_true", help="clear nodes that are cordoned, or have one of the taints")
    nodes.add_argument(
        "--node-taint",
        action="append",
        default=[],
        metavar="KEY=SECONDS",
        help="key of a taint, and how long a node with it has; may be repeated",
    )
    seconds = [
        ("cordon", default.cordon_seconds, "how long a cordoned node has"),
        ("urgent", default.urgent_seconds, "with less time than this, all applications of a node are moved at once"),
    ]
    for name, number, words in seconds:
        nodes.add_argument(f"--node-{name}-seconds", type=int, default=number, metavar="S", help=f"{words}; default {number}")
    words = f"applications under way at the same time; default {default.at_once}"
    nodes.add_argument("--node-at-once", type=int, default=default.at_once, metavar="N", help=words)
    words = "refuse evictions of pods that can be moved, by PodDisruptionBudgets, until they are"
    nodes.add_argument("--node-budgets", action="store_true", help=words)


def _nodes(parser: argparse.ArgumentParser, options: argparse.Namespace) -> NodeSettings | None:
    taints: dict[str, int] = {}
    for text in options.node_taint:
        key, equals, seconds = text.rpartition("=")
        if not equals or not key or not seconds.isdecimal() or not 1 <= int(seconds) <= _LONGEST_SECONDS:
            parser.error(f"--node-taint {text!r} is not a key and up to {_LONGEST_SECONDS} seconds, such as example.com/going=120")
        taints[key] = int(seconds)
    bounds = (("node_cordon_seconds", 1, _LONGEST_SECONDS), ("node_urgent_seconds", 0, _LONGEST_SECONDS), ("node_at_once", 1, None))
    for name, least, most in bounds:
        flag, value = f"--{name.replace('_', '-')}", getattr(options, name)
        if value < least:
            parser.error(f"{flag} must be at least {least}, not {value}")
        if most is not None and value > most:
            parser.error(f"{flag} must be at most {most}, not {value}")
    if not options.node_watch:
        return None
    return NodeSettings(
        taints=taints,
        cordon_seconds=options.node_cordon_seconds,
        urgent_seconds=options.node_urgent_seconds,
        at_once=options.node_at_once,
        budgets=options.node_budgets,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; with ``evacuate NODE`` clear a node instead."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        print(
            f"error: the package {error.name} is missing: in a clone of spark-drain run python3 -m pip install '.[operator]'",
            file=sys.stderr,
        )
        return 1


def _run(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["evacuate"]:
        from spark_drain_operator.maintenance.evacuate import main as evacuate

        return evacuate(arguments[1:])
    settings, options = parse(arguments)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(_LOG_FORMAT))
    logging.basicConfig(level=options.log_level, handlers=[handler])
    logging.getLogger("kopf").setLevel(max(logging.WARNING, logging.getLogger().level))
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)  # a line for each probe
    from spark_drain_operator.handlers.serve import RestoredError, run_operator

    try:
        asyncio.run(run_operator(settings, options.liveness))
    except (ApiUnavailableError, NotServedError, RestoredError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
