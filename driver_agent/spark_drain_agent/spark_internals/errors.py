"""What calls into the JVM raise, and what of a failure's text matters."""

from __future__ import annotations

import re
import threading
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from spark_drain_agent.signal_handlers import may_be_raised_by_handler
from spark_drain_agent.spark_internals.redaction import redacted_start

__all__ = [
    "JavaError",
    "UnsupportedSparkError",
    "answered",
    "cause_first",
    "chain_of",
    "class_of",
    "in_words",
    "interrupted",
    "is_denied",
]

JavaError: tuple[type[Exception], type[Exception], type[Exception]] = (Py4JError, CapturedException, ConnectionError)
"""What a call into the JVM raises: PySpark puts exceptions of its own in the place of those that it knows, and a JVM that is gone refuses
connections."""

_DENIED = ("java.nio.file.AccessDeniedException", "org.apache.hadoop.security.AccessControlException")
_LONGEST_CAUSE = 4000
_IN_FULL, _LEAST_SHOWN = "; in full: ", 20
_LONGEST_CHAIN = 20
"""Causes that are looked at; a chain may be a circle."""
_TRACEBACK = "Traceback (most recent call last):"
_DIRECT = "The above exception was the direct cause of the following exception:"
_WRAPPED = "terminated with exception: "
_CALLED = re.compile(r"py4j\.protocol\.Py4JJavaError: An error occurred while calling \S+\.\n: ")
"""What py4j says before an exception of Java's."""
_FRAME = re.compile(r'^\s+File "(?P<file>.+?)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_END = re.compile(
    r"\n[ \t\r]*(?:SQLSTATE: |at [\w.$]+\(|\.\.\. \d+ more|Driver stacktrace:|JVM stacktrace:|Caused by: |=== Streaming Query ===|"
    r"The above exception was|During handling of the above|Traceback \(most recent call last\):)"
)
_SPARK = re.compile(
    r"/(?:pyspark|py4j|spark_drain_agent)/|/(?:pyspark|py4j)[^/]*\.zip/|<frozen |/lib/python3[.\d]*/(?!(?:site|dist)-packages/)"
)
_INSTALLED = re.compile(r"/(?:site|dist)-packages/")


class UnsupportedSparkError(Exception):
    """This Spark lacks something that the agent needs; the message names it."""


def answered(error: BaseException) -> bool:
    """Return whether a call into the JVM has come to its end; a signal handler may have raised the exception, or the connection broke."""
    return isinstance(error, Py4JJavaError | PySparkException)


def interrupted(error: BaseException) -> bool:
    """Return whether a signal handler of the application has raised an exception, whatever code it has interrupted.

    In a call into the JVM, Py4J puts an error of its own in the place of what the handler raised (`py4j.protocol.get_return_value`):
    without a trace, which those errors have that are answers.
    """
    if threading.current_thread() is not threading.main_thread():
        return False  # Python runs handlers in the main thread only
    left_without_answer = isinstance(error, Py4JError) and not answered(error) and "Trace:" not in str(error)
    return left_without_answer or may_be_raised_by_handler(error)


def class_of(error: BaseException) -> str:
    """Return the name of a Java exception's class, or "" where the exception is of another kind."""
    return str(error.java_exception.getClass().getName()) if isinstance(error, Py4JJavaError) else ""


def is_denied(error: BaseException) -> bool:
    """Return whether the driver lacks a permission, as Hadoop's connectors say it."""
    return class_of(error) in _DENIED


def in_words(error: BaseException, limit: int = 1000) -> str:
    """Return an exception's message with its cause first, of one from the JVM without the stack traces that py4j makes part of it."""
    return cause_first(chain_of(error.java_exception) if isinstance(error, Py4JJavaError) else str(error), limit)


def chain_of(java_exception: Any) -> str:
    """Return what a Java exception and its causes say, outermost first, without their stack traces and what was said already."""
    told: list[str] = []
    for _ in range(_LONGEST_CHAIN):
        if java_exception is None:
            break
        text = str(java_exception.toString())
        if not told or text not in told[-1]:
            told.append(text)
        java_exception = java_exception.getCause()
    return "\nCaused by: ".join(told)


def cause_first(text: str, limit: int = 1000) -> str:
    """Return a failure's text with its innermost cause first; the text that wraps it follows, and only that is cut.

    Parameters
    ----------
    text
        As Spark tells it: exceptions of Python inside of exceptions of Java inside of others.
    limit
        Characters to keep; a longer cause is kept all the same.
    """
    text = text.strip()
    cause = _python_cause(text) or _java_cause(text)
    if not cause or cause == text:
        return redacted_start(text, limit)
    cause = redacted_start(cause, _LONGEST_CAUSE)
    room = limit - len(cause) - len(_IN_FULL)
    whole = redacted_start(text, max(room, 1))
    return f"{cause}{_IN_FULL}{whole}" if room > _LEAST_SHOWN or (room > 0 and not whole.endswith("…")) else cause


def _python_cause(text: str) -> str:
    """Return type, place and text of the innermost Python exception, or ""."""
    start = text.rfind(_TRACEBACK)
    while start > 0 and text[:start].rstrip().endswith(_DIRECT):
        start = text.rfind(_TRACEBACK, 0, start)
    if start < 0:
        return ""
    lines = text[start + len(_TRACEBACK) :].lstrip("\n").split("\n")
    frames = 0
    while frames < len(lines) and lines[frames].startswith((" ", "\t")):
        frames += 1
    told = _until_end("\n".join(lines[frames:]))
    place = _place(lines[:frames])
    if called := _CALLED.match(told):
        told, place = told[called.end() :], "" if _SPARK.search(place) else place
    name, colon, words = told.partition(": ")
    return f"{name}{place}{colon}{words}" if re.fullmatch(r"[\w.]+", name) else f"{told}{place}"


def _place(frames: list[str]) -> str:
    """Return the last line of the user's code, else of an installed package, else of anything, as `` (file, line 7, in function)``."""
    found = [match for line in frames if (match := _FRAME.match(line))]
    own = [match for match in found if not _SPARK.search(match["file"])]
    for candidates in ([match for match in own if not _INSTALLED.search(match["file"])], own, found):
        if candidates:
            last = candidates[-1]
            function = f", in {last['function']}" if last["function"] else ""
            return f" ({last['file']}, line {last['line']}{function})"
    return ""


def _java_cause(text: str) -> str:
    """Return the innermost exception of Java's, or what Spark says that a query ended with."""
    _, caused, last = text.rpartition("\nCaused by: ")
    if caused:
        return _until_end(last)
    _, wrapped, last = text.partition(_WRAPPED)
    return _until_end(last) if wrapped else ""


def _until_end(text: str) -> str:
    end = _END.search(text)
    return (text[: end.start()] if end else text).strip()
