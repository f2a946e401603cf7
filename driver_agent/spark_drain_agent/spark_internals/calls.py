"""Calls into the JVM whose exception is an answer, such as that there is no such file."""

from __future__ import annotations

from typing import Any

from py4j.protocol import (  # type: ignore[import-untyped]  # py4j ships no types
    CALL_COMMAND_NAME,
    END_COMMAND_PART,
    get_return_value,
)

__all__ = ["attempt"]


def attempt(method: Any, *arguments: Any) -> Any:
    """Call a Java method, and raise its exception as it is.

    To translate one into one of its own, PySpark (`pyspark.errors.exceptions.captured`) first asks the JVM for the class of each that it
    knows, by some sixty questions. It does so in a function that it has put in the place of py4j's in `py4j.java_gateway`; here py4j's own
    reads the answer.

    Parameters
    ----------
    method
        Of a Java object or class, as py4j gives it.
    *arguments
        Its arguments.

    Raises
    ------
    Py4JJavaError
        The method has raised an exception.
    """
    text, temporary = method._build_args(*arguments)
    client = method.gateway_client
    answer = client.send_command(f"{CALL_COMMAND_NAME}{method.command_header}{text}{END_COMMAND_PART}")
    try:
        return get_return_value(answer, client, method.target_id, method.name)
    finally:
        for each in temporary:
            each._detach()
