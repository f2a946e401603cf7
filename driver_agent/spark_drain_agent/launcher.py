"""``python -m spark_drain_agent``: run an unmodified PySpark script with the agent around it."""

from __future__ import annotations

import argparse
import logging
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from spark_drain_store import StoreError, open_channel

from spark_drain_agent.attachment import current_agent, install_hooks
from spark_drain_agent.commands import COMMANDS
from spark_drain_agent.commands import run as run_command

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m spark_drain_agent",
        description="Run a PySpark script so that its streaming queries can be drained.",
        epilog="`python -m spark_drain_agent demo` shows a drain on this machine in two minutes.",
    )
    parser.add_argument("--metadata-store", metavar="LOCATION", help="file:DIR or configmap:NAMESPACE/APPLICATION")
    parser.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    parser.add_argument("script", help="the application, an unmodified PySpark script; or one of the words demo, recover and resume")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the application's own arguments")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the script's exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    logging.getLogger("spark_drain").setLevel(options.log_level)
    if options.script == "demo":
        from spark_drain_agent.demo.run import main as demo

        return demo(options.arguments)
    if options.script in COMMANDS:
        return run_command(options.script, options.arguments)
    script = Path(options.script)
    if not script.is_file():
        print(f"error: script {options.script!r} does not exist", file=sys.stderr)
        return 2
    if options.metadata_store is not None:
        try:
            open_channel(options.metadata_store)
        except StoreError as error:
            print(f"error: --metadata-store: {error}", file=sys.stderr)
            return 2
    install_hooks(options.metadata_store)
    return _run_script(script, options.arguments)


def _run_script(script: Path, arguments: Sequence[str]) -> int:
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    code: int | str | None = 0
    failed = False
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code, failed = 1, True
    agent = current_agent()
    if agent is not None:
        # Beyond the point of no return the driver must outlive main, or its pod would be restarted before it is scaled down.
        agent.hold_exit(failed=failed)
    if isinstance(code, str):
        print(code, file=sys.stderr)
        return 1
    return code or 0
