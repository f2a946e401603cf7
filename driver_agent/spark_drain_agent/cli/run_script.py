"""``python -m spark_drain_agent``: run an unmodified PySpark program with the agent around it."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

from spark_drain_store import StoreError, open_channel

from spark_drain_agent.cli.checkpoint_commands import COMMANDS
from spark_drain_agent.cli.checkpoint_commands import run as run_command
from spark_drain_agent.cli.main_module import become_main
from spark_drain_agent.cli.outlived import run_main
from spark_drain_agent.driver.attach import current_agent, install_hooks
from spark_drain_agent.milestones import LOG

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m spark_drain_agent",
        description="Run a PySpark program so that its streaming queries can be drained.",
        epilog="`python -m spark_drain_agent demo` shows a drain on this machine in two minutes.",
        allow_abbrev=False,
    )
    parser.add_argument("--metadata-store", metavar="LOCATION", help="file:DIR or configmap:NAMESPACE/APPLICATION")
    parser.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module or package, as with python -m")
    parser.add_argument(
        "program",
        metavar="SCRIPT",
        nargs=argparse.PARSER,  # of all, REMAINDER would take a first -- away from the application
        help=(
            "the application: an unmodified PySpark script, or a folder or zip file with a __main__.py, and its own arguments; or demo, "
            "recover or resume"
        ),
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, or a program, whose exceptions (`SystemExit` too) come through."""
    options = _parser().parse_args(arguments)
    script, *its_arguments = options.program[1:] if options.program[0] == "--" else options.program
    _log_to_stderr(options.log_level)
    if not options.module:
        if script == "demo":
            from spark_drain_agent.demo.run import main as demo

            return demo(its_arguments)
        if script in COMMANDS:
            return run_command(script, its_arguments)
        if not Path(script).exists():
            print(f"error: script {script!r} does not exist", file=sys.stderr)
            return 2
    if options.metadata_store is not None:
        try:
            open_channel(options.metadata_store)
        except StoreError as error:
            print(f"error: --metadata-store: {error}", file=sys.stderr)
            return 2
    _keep_loggers()
    install_hooks(options.metadata_store)
    run_main(partial(_run, script, its_arguments, module=options.module))
    return 0


class _Lines(logging.StreamHandler):  # type: ignore[type-arg]  # generic for type checkers only
    """Lines on stderr, which a program may close: a line that cannot be written is nobody's failure."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        """Do nothing, where `logging` would write to stderr in turn, and raise."""


def _log_to_stderr(level: str) -> None:
    """Show the agent's own lines, and leave the root logger to the program: a handler there would make its basicConfig do nothing."""
    handler = _Lines()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name, lowest in ((LOG.name, level), ("spark_drain_store", "WARNING")):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(lowest)
        logger.propagate = False


class _Kept(logging.Logger):
    """A logger that a program does not disable together with all those that its `logging.config` does not name."""

    @property
    def disabled(self) -> bool:
        return False

    @disabled.setter
    def disabled(self, value: bool) -> None:
        pass


def _keep_loggers() -> None:
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("spark_drain") and isinstance(logger, logging.Logger):
            logger.__class__ = _Kept


def _run(program: str, arguments: Sequence[str], *, module: bool) -> None:
    failed = False
    try:
        become_main(program, arguments, module=module)
    except SystemExit:
        raise
    except BaseException as error:
        failed = True
        _hide_launcher(error)
        raise
    finally:
        agent = current_agent()
        if agent is not None:
            agent.hold_exit(failed=failed, for_good=False)


def _hide_launcher(error: BaseException) -> None:
    """Let `sys.excepthook`, the application's own or Python's, see the traceback that it would see without the agent."""
    trace, hook = error.__traceback__, sys.excepthook
    while trace is not None and trace.tb_frame.f_globals["__name__"] in (__name__, become_main.__module__):
        trace = trace.tb_next

    def excepthook(kind: type[BaseException], value: BaseException, whole: TracebackType | None) -> None:
        if value is not error:
            hook(kind, value, whole)
        else:
            hook(kind, value.with_traceback(trace), trace)

    sys.excepthook = excepthook
