"""Scripts that print what a program can see of how it was started and how it ends; none of them needs a JVM."""

from __future__ import annotations

__all__ = ["PROBES", "SAMPLE", "START"]

SAMPLE = {
    "exit with a text",
    "exception",
    "syntax error",
    "excepthook",
    "interrupt",
    "thread that outlives main",
    "order at exit",
    "threads after an exception",
    "threads after a text",
    "a handler that exits while threads are waited for",
    "processes",
    "logging",
}
"""Those of `PROBES` that `make test` runs"""

START = """
import json, sys
import __main__
names = ("__name__", "__file__", "__package__", "__cached__", "__doc__")
said = {name: globals().get(name, "missing") for name in names}
said["spec"] = None if __spec__ is None else [__spec__.name, __spec__.origin, __spec__.parent]
said["loader"] = type(__loader__).__name__, getattr(__loader__, "name", None), getattr(__loader__, "path", None)
said["own"] = sys.modules["__main__"].__dict__ is globals() and __main__.__dict__ is globals()
said["globals"] = sorted(globals())
said["argv"] = sys.argv
said["path"] = sys.path
said["future"] = (lambda x: 0).__code__.co_flags & 0x1000000
print(json.dumps(said, default=repr))
"""

PROBES = {
    "nothing": "",
    "annotations": "x: int = 1\nprint(__annotations__, f'{__builtins__!r:.20}')\n",
    "exit code": "import sys\nsys.exit(7)\n",
    "exit without a code": "import sys\nsys.exit()\n",
    "exit with a text": "import sys\nsys.exit('out of milk')\n",
    "exit with an object": "import sys\nsys.exit([1, 2])\n",
    "exit with true": "import sys\nsys.exit(True)\n",
    "exit with a large number": "raise SystemExit(300)\n",
    "exit in a thread": "import sys, threading\nthread = threading.Thread(target=sys.exit, args=(5,))\nthread.start()\nthread.join()\n",
    "os._exit": "import os\nos._exit(9)\n",
    "exception": "def inner():\n    raise ValueError('out of milk')\n\n\ninner()\n",
    "exception with a cause": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('out of milk') from error\n",
    "exception group": "raise ExceptionGroup('both', [ValueError('one'), TypeError('two')])\n",
    "exception in a library": "import json\njson.loads('{')\n",
    "exception in a thread": """
import threading
thread = threading.Thread(target=lambda: 1 / 0, name='worker')
thread.start()
thread.join()
""",
    "syntax error": "print('never')\nif\n",
    "import that fails": "import no_such_module\n",
    "recursion": "def down():\n    down()\n\n\ntry:\n    down()\nexcept RecursionError:\n    print('deep')\n",
    "excepthook": """
import sys, traceback

def hook(kind, error, trace):
    print("hook", kind.__name__, error, [frame.name for frame in traceback.extract_tb(trace)])
    print([frame.name for frame in traceback.extract_tb(error.__traceback__)])

sys.excepthook = hook

def inner():
    raise ValueError("out of milk")

inner()
""",
    "excepthook that exits": "import sys\nsys.excepthook = lambda *_: sys.exit(4)\nraise ValueError('out of milk')\n",
    "excepthook of a thread": """
import threading
threading.excepthook = lambda args: print("hook", args.exc_type.__name__, args.thread.name)
thread = threading.Thread(target=lambda: 1 / 0, name="worker")
thread.start()
thread.join()
""",
    "interrupt": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\ntime.sleep(60)\n",
    "interrupt that is caught": """
import os, signal, sys, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(3)
""",
    "interrupt with a handler": """
import os, signal
signal.signal(signal.SIGINT, lambda *_: print("handled"))
os.kill(os.getpid(), signal.SIGINT)
print("went on")
""",
    "termination with a handler that raises": """
import os, signal, time

def ended(number, frame):
    raise RuntimeError(number)

signal.signal(signal.SIGTERM, ended)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
""",
    "interrupt and what runs at exit": """
import atexit, os, signal, time
atexit.register(print, 'at exit')
os.kill(os.getpid(), signal.SIGINT)
time.sleep(60)
""",
    "termination": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n",
    "thread that outlives main": """
import pickle, sys, threading, time

class C:
    pass

class D(C):
    pass

def later():
    while threading.main_thread().is_alive():
        time.sleep(0.01)
    import __main__
    print("own", __main__.__dict__ is globals(), sys.modules["__main__"].__name__, __main__.__spec__)
    print("pickled", type(pickle.loads(pickle.dumps(D()))) is D, sys.argv, C is __main__.C)

threading.Thread(target=later).start()
print("main is over")
""",
    "daemon thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint('over')\n",
    "order at exit": """
import atexit, threading, time
atexit.register(print, "first registered")
atexit.register(lambda: print("second registered", __name__))

def work():
    time.sleep(0.3)
    print("the thread is over")

threading.Thread(target=work).start()
print("main is over")
""",
    "threads after an exception": """
import atexit, sys, threading, time
atexit.register(print, "at exit", flush=True)

def work():
    time.sleep(0.3)
    print("the thread is over", flush=True)

threading.Thread(target=work).start()
raise ValueError("out of milk")
""",
    "threads after a text": """
import atexit, sys, threading, time
from concurrent.futures import ThreadPoolExecutor

def later(seconds):
    time.sleep(seconds)
    print(f"over after {seconds} s", file=sys.stderr)

atexit.register(print, "at exit")
ThreadPoolExecutor(1).submit(later, 0.2)
threading.Thread(target=later, args=(0.5,)).start()
sys.exit("out of milk")
""",
    "a handler that exits while threads are waited for": """
import os, signal, sys, threading, time

def later():
    while threading.main_thread().is_alive():
        time.sleep(0.05)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
threading.Thread(target=later).start()
sys.exit(7)
""",
    "processes": """
import multiprocessing

class C:
    def __init__(self, number):
        self.number = number

def double(c):
    return C(c.number * 2)

print("imported as", __name__, flush=True)
if __name__ == "__main__":
    for method in ("spawn", "forkserver", "fork"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, [c.number for c in pool.map(double, [C(1), C(2)])], flush=True)
""",
    "globals at exit": """
class Loud:
    def __del__(self):
        print("released")

loud = Loud()
""",
    "lines of its own source": """
import inspect

def f():
    return 1

print(inspect.getsource(f))
import linecache
print(linecache.getlines(__file__)[0])
""",
    "logging": """
import logging
logging.basicConfig(format="%(levelname)s-%(message)s", level=logging.INFO)
logging.info("info")
logging.getLogger("app").info("of app")
logging.getLogger("app").debug("not shown")
print(logging.getLogger().level, logging.getLogger().handlers, logging.getLogger("app").handlers)
""",
    "logging without a configuration": "import logging\nlogging.warning('once')\nlogging.getLogger('app').error('of app')\n",
    "logging by a dictionary": """
import logging, logging.config
logging.config.dictConfig({
    "version": 1,
    "formatters": {"f": {"format": "%(name)s %(message)s"}},
    "handlers": {"h": {"class": "logging.StreamHandler", "formatter": "f"}},
    "root": {"level": "INFO", "handlers": ["h"]},
})
logging.getLogger("app").info("once")
""",
    "warnings": "import warnings\nwarnings.warn('careful')\n",
    "input": "import sys\nprint(sys.stdin.read())\n",
    "directory": "import os, sys\nos.chdir('/')\nprint(__file__, sys.argv)\n",
    "a module beside it": "import beside\nprint(beside.WHO, beside.__name__)\n",
}
