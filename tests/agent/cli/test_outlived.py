"""A main that ends before the thread that awaits its query, on Python from 3.12 on, whose shutdown starts no thread any more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.harness import Drains, Driver, Feed, eventually, exactly, ids_in, newest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_drain_and_the_next_start_once_main_has_ended(tmp_path: Path) -> None:
    feed, drains = Feed(tmp_path / "input"), Drains(tmp_path / "store")
    for _ in ("first version", "next version"):
        feed.add(2)
        driver = Driver("outlived.py", tmp_path, store=drains)
        try:
            drains.reaches(drains.write("CatchUp"), "Drained", driver=driver)
            drains.clean_up()
            assert driver.wait() == 0, driver.tail()
        finally:
            driver.close()
        assert (tmp_path / "over").exists()
        assert ids_in(tmp_path / "out") == exactly(feed.ids)


@pytest.mark.soak
def test_a_program_that_attaches_the_agent_itself_is_told_the_way_out(tmp_path: Path) -> None:
    feed, drains = Feed(tmp_path / "input"), Drains(tmp_path / "store")
    feed.add(2)
    driver = Driver("outlived.py", tmp_path, drains.location, store=None)
    try:
        drain = drains.reaches(drains.write(), "Rejected", driver=driver)
        assert (drain["reason"], "by `python -m spark_drain_agent`" in drain["message"]) == ("UnsupportedSession", True)
        feed.add()
        eventually(lambda: newest(tmp_path / "checkpoint", "commits") >= 2, "the query to read on", alive=driver)
    finally:
        driver.close()


ENDS_BEFORE_ITS_POOL = """
import signal, sys, threading
from concurrent.futures import ThreadPoolExecutor
from spark_drain_agent.cli.outlived import run_main

def shut_down(join=threading._shutdown):
    print("waits", flush=True)
    for call in reversed(threading._threading_atexits):  # as Python does from 3.12 on, which marks main's end afterwards
        call()
    join()

def hook(told):
    sys.__unraisablehook__(told)
    print("unraisable", told.exc_type.__name__, told.object.__name__)
    raise ValueError("this hook is wrong")

def main():
    ThreadPoolExecutor().submit(threading.Event().wait)
    sys.exit(3)

threading._shutdown = shut_down
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
sys.unraisablehook = hook
run_main(main)
"""


def test_what_a_signal_handler_raises_ends_the_wait_for_a_pool() -> None:
    """And is told to the program's hook, whatever that makes of it."""
    program = subprocess.Popen([sys.executable, "-c", ENDS_BEFORE_ITS_POOL], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "waits\n"
        os.kill(program.pid, signal.SIGTERM)
        told, errors = program.communicate(timeout=30)
    finally:
        program.kill()
    assert (program.returncode, told) == (3, "unraisable SystemExit threading\n")
    lines = errors.splitlines()
    assert lines[0].startswith("Exception ignored in: <module 'threading'")
    assert [line for line in lines if line.startswith(("SystemExit", "Exception ignored in sys", "ValueError"))] == [
        "SystemExit: 7",
        next(line for line in lines if line.startswith("Exception ignored in sys.unraisablehook: <function hook")),
        "ValueError: this hook is wrong",
    ]


FORKS_AFTER_MAIN = """
import multiprocessing, sys, threading, time
from pathlib import Path
from spark_drain_agent.cli.outlived import run_main

shut_down = threading._shutdown

def write():
    time.sleep(0.3)
    Path(sys.argv[1]).touch()

def fork():
    while threading._shutdown is shut_down:
        time.sleep(0.01)
    child = multiprocessing.get_context("fork").Process(target=lambda: threading.Thread(target=write).start())
    child.start()
    child.join()

run_main(lambda: threading.Thread(target=fork).start())
"""


def test_threads_of_a_child_that_is_forked_once_main_has_ended_are_waited_for(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKS_AFTER_MAIN, str(tmp_path / "written")], check=True, timeout=60)
    assert (tmp_path / "written").exists()


FAILS_BESIDE_A_THREAD = """
import sys, threading, time
from spark_drain_agent.cli.outlived import run_main

def tidy_up():
    time.sleep(0.3)
    sys.excepthook = sys.__excepthook__

def main():
    threading.Thread(target=tidy_up).start()
    raise ValueError("main has failed")

run_main(main)
"""


@pytest.mark.parametrize("profiler", [[], ["-m", "cProfile", "-o", "profile"]], ids=["", "profiled"])
def test_a_main_that_fails_beside_a_thread_fails_under_what_catches_the_exits_of_programs(tmp_path: Path, profiler: list[str]) -> None:
    (tmp_path / "program.py").write_text(FAILS_BESIDE_A_THREAD)
    done = subprocess.run([sys.executable, *profiler, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.count("ValueError: main has failed")) == (1, 1)


WRONG_HOOK = """
import sys, threading
from spark_drain_agent.cli.outlived import run_main

def hook(*told):
    print("hook", told[0].__name__)
    raise ValueError("this hook is wrong")

def main():
    threading.Thread(target=threading.Event().wait, args=(0.5,)).start()
    raise KeyError("main")

sys.excepthook = hook
run_main(main)
"""


def test_an_excepthook_that_raises_is_called_once() -> None:
    ended = subprocess.run([sys.executable, "-c", WRONG_HOOK], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (1, "hook KeyError\n")
    heads = ("Error in sys.excepthook:", "ValueError: ", "Original exception was:", "KeyError: ")
    assert tuple(head for line in ended.stderr.splitlines() for head in heads if line.startswith(head)) == heads


LAST_WORDS = """
import sys, threading
from spark_drain_agent.cli.outlived import run_main

over = threading.Event()

def main():
    threading.Thread(target=over.wait, args=(5,)).start()
    {main}

try:
    run_main(main)
finally:
    print("threads are left" if threading.active_count() > 1 else "none are left")
    over.set()
"""


@pytest.mark.parametrize(
    ("options", "main", "told"),
    [
        ([], "sys.stderr = None; sys.exit('bye')", (1, "none are left\n", "bye\n")),
        ([], "del sys.stderr; sys.exit('bye')", (1, "none are left\n", "bye\n")),
        ([], "sys.exit(type('Odd', (), {'__str__': lambda _: 1 / 0})())", (1, "none are left\n", "\n")),
        (["-i"], "print('main is over')", (0, "main is over\nthreads are left\n", ">>> \n")),
    ],
    ids=["stderr is None", "no stderr", "no text", "prompt"],
)
def test_what_comes_before_python_waits_for_threads(options: list[str], main: str, told: tuple[int, str, str]) -> None:
    command = [sys.executable, *options, "-c", LAST_WORDS.format(main=main)]
    ended = subprocess.run(command, input="", capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == told
