"""``python -m spark_drain_agent recover|resume CHECKPOINT``: help for a checkpoint whose application does not run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.checkpoint.batch_ids import refuse_reuse
from spark_drain_agent.checkpoint.discard import NothingPendingError, PendingBatchTakenError, discard_pending
from spark_drain_agent.checkpoint.files import CheckpointFiles, CheckpointIOError, CheckpointLeasedError
from spark_drain_agent.checkpoint.journal import JOURNAL_FILE, MalformedJournalError, read_journal
from spark_drain_agent.checkpoint.lease import acquire_lease
from spark_drain_agent.checkpoint.restore import RestoreError, check_restorable, restore
from spark_drain_agent.spark_internals.errors import JavaError, in_words
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["COMMANDS", "run"]

_RAN = "The application must not run, on any machine, while this command does."


@contextmanager
def _leased(checkpoint: str, confs: Sequence[tuple[str, str]]) -> Iterator[CheckpointFiles]:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for name, value in confs:
        builder = builder.config(name, value)
    with as_agent():
        spark = builder.getOrCreate()
    internals = SparkInternals(spark)
    try:
        files = CheckpointFiles(internals, internals.qualified(checkpoint))
    except JavaError as error:
        raise CheckpointIOError(
            f"checkpoint {checkpoint!r} cannot be opened: {in_words(error)}; run this in the application's image, and "
            "give what its sparkConf says of the store with --conf NAME=VALUE"
        ) from error
    if not files.is_file("metadata") and not files.is_file(JOURNAL_FILE):
        raise CheckpointIOError(
            f"{files.root} is not a checkpoint directory: no metadata file; give the checkpointLocation of one query, the directory that "
            "has offsets and commits"
        )
    mine = acquire_lease(files, internals)
    try:
        yield files
    finally:
        mine.release()


def _conf(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=VALUE")
    return name, value


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--conf",
        metavar="NAME=VALUE",
        type=_conf,
        action="append",
        default=[],
        help="what the application's sparkConf says of the checkpoint's store, for example spark.hadoop.fs.s3a.endpoint=URL; repeatable",
    )
    parser.add_argument(
        "--accept-batch-id-reuse",
        action="store_true",
        help="the sink replaces what it has under a batch id that it has seen; without it a sink that the agent does not know "
        "(foreachBatch, foreach, a third party's) is refused where it may have taken the flush: one that skips such an id loses records",
    )


def recover(arguments: Sequence[str]) -> int:
    """Give up a pending flush batch."""
    parser = argparse.ArgumentParser(prog="python -m spark_drain_agent recover", description=f"End an interrupted drain. {_RAN}")
    parser.add_argument("checkpoint", help="the query's checkpointLocation, any Hadoop URI")
    parser.add_argument(
        "--discard-pending",
        action="store_true",
        required=True,
        help="do not run the flush batch any more: open windows are not emitted; with Reseed they stay in the archive, otherwise in state",
    )
    _add_common(parser)
    options = parser.parse_args(arguments)
    with _leased(options.checkpoint, options.conf) as files:
        journal = discard_pending(files, read_journal(files), accept_reuse=options.accept_batch_id_reuse)
    if journal.drains == journal.generation:
        archive = files.uri(journal.work)
        refused = refuse_reuse(journal.sink_batch_ids, accepted=False) if journal.flush_may_be_taken else ""
        kept = f", and `resume` does not restore them, since the sink {refused} and may have taken the flush" if refused else ""
        print(f"drained without its flush: the next version starts after batch {journal.batch_id}; open windows are in {archive}{kept}")
    else:
        print(f"undone: the application goes on after batch {journal.batch_id}, with its state")
    return 0


def resume(arguments: Sequence[str]) -> int:
    """Put the generation before a drain back."""
    parser = argparse.ArgumentParser(prog="python -m spark_drain_agent resume", description=f"Go back to before a drain. {_RAN}")
    parser.add_argument("checkpoint", help="the query's checkpointLocation, any Hadoop URI")
    parser.add_argument("--from", dest="origin", choices=("archive",), required=True, help="the archive of the checkpoint's last drain")
    parser.add_argument(
        "--discard-newer",
        action="store_true",
        help="also when batches were run since: their records are processed again, and what they have written stays in the sink",
    )
    _add_common(parser)
    options = parser.parse_args(arguments)
    with _leased(options.checkpoint, options.conf) as files:
        accepted = {"discard_newer": options.discard_newer, "accept_reuse": options.accept_batch_id_reuse}
        found = check_restorable(files, read_journal(files), **accepted)
        journal = restore(files, found)
    print(
        f"restored: the version that was drained goes on after batch {journal.batch_id}, with its state; what the flush had written stays "
        "in the sink, and windows that it emitted come again when they are complete"
    )
    if journal.discarded_ids >= found.first_batch_id:
        print(
            f"batches {found.first_batch_id} to {journal.discarded_ids} of the newer version are given up, and what they have written "
            "stays in the sink beside what is processed again: remove it before the next start"
        )
    return 0


COMMANDS = {"recover": recover, "resume": resume}


def run(command: str, arguments: Sequence[str]) -> int:
    """Run one of `COMMANDS`; returns the exit code."""
    try:
        return COMMANDS[command](arguments)
    except (
        RestoreError,
        NothingPendingError,
        PendingBatchTakenError,
        CheckpointLeasedError,
        MalformedJournalError,
        OSError,
        *JavaError,
    ) as error:
        print(f"error: {in_words(error)}", file=sys.stderr)
        return 1
