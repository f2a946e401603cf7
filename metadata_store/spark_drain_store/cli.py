"""The ``drain`` and ``placement`` commands, for people and scripts."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from spark_drain_store.channel import open_channel
from spark_drain_store.drain_commands import add_drain_verbs, run_drain_verb
from spark_drain_store.drains import DrainAlreadyActiveError
from spark_drain_store.one_line import one_line
from spark_drain_store.options import UnsupportedOptionError
from spark_drain_store.placement_commands import add_placement_verbs, run_placement_verb
from spark_drain_store.placement_messages import UnsupportedDestinationError
from spark_drain_store.protocol import StoreError
from spark_drain_store.topics import DRAIN, PLACEMENT

__all__ = ["main"]

_TOPICS = {"drain": (DRAIN, run_drain_verb), "placement": (PLACEMENT, run_placement_verb)}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m spark_drain_store", description="Request and watch drains and placements through a metadata store."
    )
    parser.add_argument("--metadata-store", required=True, metavar="LOCATION", help="file:DIR or configmap:NAMESPACE/APPLICATION")
    topics = parser.add_subparsers(dest="topic", required=True, metavar="TOPIC")
    add_drain_verbs(topics.add_parser("drain", help="drains of the application"))
    add_placement_verbs(topics.add_parser("placement", help="moves and restarts of single executors"))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0, or 1 with one line on standard error."""
    options = _parser().parse_args(arguments)
    topic, run = _TOPICS[options.topic]
    try:
        run(open_channel(options.metadata_store, topic), options)
        if sys.stdout is not None:  # else it was closed
            sys.stdout.flush()
    except BrokenPipeError:
        _write_no_more()  # who reads has enough, as `head` has
    except OSError as error:
        _write_no_more()
        print(f"error: {one_line(str(error))}; `{options.topic} show` says what was done", file=sys.stderr)
        return 1
    except (StoreError, DrainAlreadyActiveError, UnsupportedOptionError, UnsupportedDestinationError) as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        return 1
    return 0


def _write_no_more() -> None:
    """Let what is left of the output go somewhere, or Python complains when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
