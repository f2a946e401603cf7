"""Running a program as `__main__`, so that it finds everything as it would if Python had started it."""

from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from pathlib import Path
from pkgutil import get_importer, read_code
from types import CodeType, ModuleType

__all__ = ["become_main"]


def become_main(program: str, arguments: Sequence[str], *, module: bool) -> None:
    """Run a program in the place of the one that Python was started with; its `__main__` stays, for threads that outlive it.

    Parameters
    ----------
    program
        A script, compiled or not, or a folder or zip file with a ``__main__.py``; or a module's name.
    arguments
        The program's own.
    module
        Whether ``program`` is a module's name.
    """
    own = _own_path_entry()
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    if "__annotations__" in vars(sys.modules["__main__"]):  # Python 3.14 makes it when it is asked for
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    sys.argv[:] = [program, *arguments]
    path = program if os.path.isabs(program) else f"{os.getcwd()}{os.sep}{program}"  # noqa: PTH109, PTH117  # pathlib drops "./"
    if module:
        _put_first(own, os.getcwd())  # noqa: PTH109
        sys.argv[0] = "-m"
        runpy._run_module_as_main(program)  # type: ignore[attr-defined]  # what python -m calls
    elif get_importer(path) is not None:
        _put_first(own, path, always=True)
        runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]  # what python FOLDER calls
    else:
        _put_first(own, str(Path(program).resolve().parent))
        exec(_code(main, path), main.__dict__)


def _code(main: ModuleType, path: str) -> CodeType:
    with io.open_code(path) as file:
        program = file.read()  # once: it may be a pipe
    compiled: CodeType | None = read_code(io.BytesIO(program))
    main.__file__ = path
    main.__dict__["__cached__"] = None
    if compiled is not None:
        main.__loader__ = SourcelessFileLoader("__main__", path)
        return compiled
    main.__loader__ = SourceFileLoader("__main__", path)
    return compile(program, path, "exec", dont_inherit=True)


def _own_path_entry() -> str | None:
    """Return the folder that Python has put first in `sys.path` for the launcher, not for the program."""
    if sys.flags.safe_path:
        return None
    launcher = sys.modules["__main__"]
    file = getattr(launcher, "__file__", None)
    if launcher.__spec__ is not None or file is None:
        return os.getcwd()  # noqa: PTH109
    return str(Path(file).resolve().parent)


def _put_first(own: str | None, entry: str, *, always: bool = False) -> None:
    if own is not None and sys.path[:1] == [own]:
        del sys.path[0]
    if always or not sys.flags.safe_path:
        sys.path.insert(0, entry)
