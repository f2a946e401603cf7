"""Functions that the application registers for a drain."""

from __future__ import annotations

import sys
import threading
import time

import pytest
from spark_drain_agent import DrainContext, on_drain
from spark_drain_agent.user_code import callbacks
from spark_drain_agent.user_code.callbacks import CallbackError, call_back

CONTEXT = DrainContext(drain_id="u", run_id="r", mode="Drain", queries=())


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "_registered", [])


def _nothing() -> None:
    return


def test_each_is_called_in_order_at_its_time() -> None:
    called: list[str] = []
    on_drain(lambda context: called.append(f"first {context.mode}"))
    on_drain(when="after")(lambda _: called.append("after"))
    on_drain(timeout_seconds=5)(lambda _: called.append("second"))
    call_back("before", CONTEXT, _nothing)
    assert called == ["first Drain", "second"]
    call_back("after", CONTEXT, _nothing)
    assert called[2:] == ["after"]


def test_a_decorated_function_stays_what_it_was() -> None:
    @on_drain
    def save(context: DrainContext) -> str:
        return context.drain_id

    assert save(CONTEXT) == "u"


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (lambda _: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda _: sys.exit("enough"), "raised SystemExit: enough"),
        (lambda _: time.sleep(5), "did not return within 0.2 s"),
    ],
)
def test_what_fails_is_named_and_the_rest_is_not_called(callback: callbacks.Callback, words: str) -> None:
    called: list[str] = []
    on_drain(timeout_seconds=0.2)(callback)
    on_drain(lambda _: called.append("later"))
    with pytest.raises(CallbackError, match=words):
        call_back("before", CONTEXT, _nothing)
    assert not called


def test_where_no_thread_can_run_it_it_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    on_drain(lambda _: None)

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(CallbackError, match="has no thread that runs it: can't start new thread"):
        call_back("before", CONTEXT, lambda: None)


def test_a_drain_that_is_not_wanted_any_more_does_not_wait() -> None:
    def withdrawn() -> None:
        raise InterruptedError

    on_drain(lambda _: time.sleep(5))
    begun = time.monotonic()
    with pytest.raises(InterruptedError):
        call_back("before", CONTEXT, withdrawn)
    assert time.monotonic() - begun < 4


@pytest.mark.parametrize(("options", "words"), [({"when": "during"}, "'during'"), ({"timeout_seconds": 0}, "timeout_seconds 0")])
def test_bad_arguments_are_refused_when_they_are_given(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        on_drain(**options)  # type: ignore[call-overload]


def test_a_callback_that_takes_no_context_is_refused_at_once() -> None:
    """Not at the first drain, perhaps months later, which it would make fail."""

    def save() -> None: ...

    with pytest.raises(TypeError, match=r"on_drain: .*save\(\).* cannot be called with one argument, the DrainContext"):
        on_drain(save)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on_drain: 'save' is not a function"):
        on_drain("save")  # type: ignore[call-overload]
    assert not callbacks._registered


@pytest.mark.parametrize("seconds", [0, -1, "5", None, float("nan"), True])
def test_a_time_that_is_no_time(seconds: object) -> None:
    with pytest.raises(ValueError, match=f"on_drain: timeout_seconds {seconds!r} is not a positive number of seconds"):
        on_drain(timeout_seconds=seconds)  # type: ignore[call-overload]
