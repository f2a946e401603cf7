"""Starts the pipeline again and again in one warm JVM, each time as a new Spark application; one JSON command a line on stdin.

Commands: {"arguments": [...]} runs the agent's command line; {"run": "plain"|"agent", "version", "input", "base",
"goal": "finish"|"consume"} starts the pipeline. ``finish`` ends when the drain that is in the store is Drained, ``await`` when its
request was removed; ``consume`` waits until all input is read and then drains; ``cut`` drains after "batches"; ``snapshot`` does that and
copies BASE to "copy" when the drain passes "point", which is what kill -9 would leave behind then. A command may have an "app" of its own,
with its arguments after INPUT, BASE and VERSION, the drain's "options", and the seconds of a "lease". Answers {"outcome", "detail",
"points", "drain"} on stdout: the points that were passed, and what was reported of the drain.
"""

import contextlib
import io
import json
import os
import runpy
import shutil
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from spark_drain_agent import milestones
from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.cli import run_script
from spark_drain_agent.driver.attach import current_agent, install_hooks
from spark_drain_store import DrainState, open_channel
from spark_drain_store.cli import main as drain_command
from spark_drain_store.drains import Drains
from spark_drain_store.reasons import RECOVERY_NEEDS_PREVIOUS_VERSION

APP = Path(__file__).with_name("app.py")
LIMIT_SECONDS = 240
AT_REST = "Waiting for data to arrive"


def poll(condition: Any, what: str, over: threading.Event) -> Any:
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline and not over.is_set():
        if result := condition():
            return result
        time.sleep(0.05)
    raise TimeoutError(what)


def consumed() -> bool:
    # Asking PySpark for the active session would create one, before the application does.
    session = SparkSession._instantiatedSession
    active = session.streams.active if session is not None and session._sc._jsc is not None else []
    return (
        "all-started" in passed
        and bool(active)
        and all(query.lastProgress is not None and query.status["message"] == AT_REST for query in active)
    )


def drained(store: str) -> bool:
    # The killed run may have reported the end already: only this run's word counts.
    agent, drains = current_agent(), Drains.read(open_channel(store))
    if agent is None:
        return False
    mine = [report for report in drains.reports.values() if report.runs[-1] == agent.identity.run_id]
    states = {report.state for report in mine}
    if states & {DrainState.FAILED, DrainState.REJECTED} or any(report.reason == RECOVERY_NEEDS_PREVIOUS_VERSION for report in mine):
        raise TimeoutError("the drain")
    return DrainState.DRAINED in states


def stop_queries() -> None:
    session = SparkSession._instantiatedSession
    assert session is not None
    for query in session.streams.active:
        query.stop()


def application_waits() -> bool:
    # Without its notification a drain is over: an application that starts its query only then would simply read on.
    agent = current_agent()
    return agent is not None and agent.gate.user_is_waiting


passed: list[str] = []
reports: list[dict[str, Any]] = []
snapshot: dict[str, Any] = {}
"""The command that wants one, while it runs."""


def take_snapshot(reached: str) -> None:
    """Copy at the point; where the drain does not pass it, at the last one before somebody may remove the notification."""
    if snapshot and reached in (snapshot["point"], "reporting") and not Path(snapshot["copy"]).exists():
        shutil.copytree(snapshot["base"], snapshot["copy"])


def control(command: dict[str, Any], store: str, failures: list[str], over: threading.Event) -> None:
    with as_agent():
        try:
            if command["goal"] == "await":
                poll(lambda: not open_channel(store).requests.read().entries, "the request to be removed", over)
                return
            if command["goal"] == "consume":
                poll(consumed, "the input to be read", over)
                if command["run"] == "plain":
                    stop_queries()
                    return
            if command["goal"] in ("cut", "snapshot"):
                commits = f"checkpoints/*/commits/{command['batches'] - 1}"
                poll(lambda: any(Path(command["base"]).glob(commits)) or consumed(), "batches", over)
            if command["goal"] != "finish":
                options = [part for option in command.get("options", ()) for part in ("--option", option)]
                drain_command(["--metadata-store", store, "drain", "write", "--mode", command.get("mode", "Drain"), *options])
            poll(lambda: drained(store) and application_waits(), "the drain to end", over)
        except TimeoutError as error:
            failures.append(f"waited in vain for {error}: {Drains.read(open_channel(store))}")
            stop_queries()
        finally:
            reports.extend(report.as_object() for report in Drains.read(open_channel(store)).reports.values())
            drain_command(["--metadata-store", store, "drain", "cleanup", "--all"])


def run(command: dict[str, Any]) -> dict[str, Any]:
    passed.clear()
    reports.clear()
    snapshot.clear()
    if command["goal"] == "snapshot":
        snapshot.update(command)
    store = f"file:{command['base']}/store"
    app, *arguments = command.get("app", [str(APP)])
    all_at_once = app == str(APP) and command["goal"] == "consume"
    if SparkContext._jvm is not None:
        SparkContext._jvm.java.lang.System.setProperty("spark.sparkdrain.store", store)
        SparkContext._jvm.java.lang.System.setProperty("spark.sparkdrain.leaseSeconds", command.get("lease", "1"))
        SparkContext._jvm.java.lang.System.setProperty("spark.sparkdrain.flush", command.get("flush", "Auto"))
    os.chdir(command["base"])
    Path("files-per-batch").write_text("8" if all_at_once else "1")
    sys.argv = [app, command["input"], "." if app == str(APP) else command["base"], command["version"], *arguments]
    failures: list[str] = []
    over = threading.Event()
    controller = threading.Thread(target=control, args=(command, store, failures, over), daemon=True)
    result: dict[str, Any] = {"outcome": "ran", "detail": ""}
    if command["run"] == "agent" or command["goal"] == "consume":
        controller.start()
    try:
        if command["run"] == "plain":
            with as_agent():
                runpy.run_path(app, run_name="__main__")
        else:
            runpy.run_path(app, run_name="__main__")
    except Exception as error:
        traceback.print_exc()
        result = {"outcome": "failed", "detail": str(error)}
    with as_agent():
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()
            SparkSession._instantiatedSession = None
    if result["outcome"] == "failed":
        over.set()  # a controller that lives on would stop the next run's query
    if controller.ident is not None:
        controller.join()
    if result["outcome"] == "ran" and failures:
        result = {"outcome": "stuck", "detail": failures[0]}
    return {**result, "points": [*passed], "drain": reports[-1] if reports else None}


def run_command(arguments: list[str]) -> dict[str, str]:
    printed = io.StringIO()
    with as_agent(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = run_script.main(arguments)
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()
            SparkSession._instantiatedSession = None
    return {"outcome": str(code), "detail": printed.getvalue()}


answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
with as_agent():
    SparkContext(master="local[1]", conf=None).stop()  # makes the JVM, so that properties can be set
install_hooks(None)
milestones.observe(take_snapshot)
milestones.observe(passed.append)
for line in sys.stdin:
    command = json.loads(line)
    answer = run_command(command["arguments"]) if "arguments" in command else run(command)
    print(json.dumps(answer), file=answers, flush=True)
