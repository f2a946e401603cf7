"""The application `attached.py` in a child process that is started anew. Usage: spawned.py BASE STORE."""

import multiprocessing
import runpy
import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    program = str(Path(__file__).with_name("attached.py"))
    child = multiprocessing.get_context("spawn").Process(target=runpy.run_path, args=(program,), kwargs={"run_name": "__main__"})
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    child.start()
    child.join()
    sys.exit(child.exitcode)
