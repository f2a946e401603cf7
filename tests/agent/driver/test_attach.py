"""What is said where a program cannot have what it would have without the agent, and what may happen while the agent attaches."""

import atexit
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from spark_drain_agent.driver import attach
from spark_drain_agent.driver.attach import pyspark_hidden

from tests.agent.driver.streams import in_thread


def test_another_pyspark_that_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pyspark_hidden() == ""
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert pyspark_hidden() == str(tmp_path / "pyspark")


def test_a_signal_handler_may_ask_for_the_session_while_the_agent_attaches(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a store that is away this takes seconds; Python runs handlers in the thread that waits for it."""
    spark = cast(SparkSession, SimpleNamespace())
    found: list[Any] = []

    class Interrupted(SimpleNamespace):
        def begin(self) -> None:
            found.append(attach._attach(spark, "file:store"))

    made = SimpleNamespace(application_id="run", conf=None, spark_version="4.2.0", stop_returned=False)
    monkeypatch.setattr(attach, "_agent", None)
    monkeypatch.setattr(attach, "SparkInternals", lambda _: made)
    monkeypatch.setattr(attach, "Agent", lambda internals, _, identity: Interrupted(internals=internals, identity=identity))
    monkeypatch.setattr(atexit, "register", lambda _: None)
    assert found == [in_thread(lambda: attach._attach(spark, "file:store"), 10)]


def test_a_signal_handler_that_comes_before_the_agent_is_made_does_not_make_a_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """That one would answer for an application none of whose queries it has seen."""
    spark = cast(SparkSession, SimpleNamespace())
    begun: list[Any] = []
    found: list[Any] = []

    class Begun(SimpleNamespace):
        def begin(self) -> None:
            begun.append(self)

    def interrupted(_: str) -> Any:
        if not found:
            found.append(None)
            found.append(attach._attach(spark, "file:store"))
        return SimpleNamespace(close=lambda: None)

    made = SimpleNamespace(application_id="run", conf=None, spark_version="4.2.0", stop_returned=False)
    monkeypatch.setattr(attach, "_agent", None)
    monkeypatch.setattr(attach, "SparkInternals", lambda _: made)
    monkeypatch.setattr(attach, "open_channel", interrupted)
    monkeypatch.setattr(attach, "Agent", lambda internals, _, identity: Begun(internals=internals, identity=identity))
    monkeypatch.setattr(atexit, "register", lambda _: None)
    agent = in_thread(lambda: attach._attach(spark, "file:store"), 10)
    assert begun == [agent] == found[1:]


def test_an_agent_that_was_interrupted_before_it_watches_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next attempt makes one that does."""
    spark = cast(SparkSession, SimpleNamespace())
    interrupted = [True]

    class Begun(SimpleNamespace):
        def begin(self) -> None:
            if interrupted.pop(0):
                raise KeyboardInterrupt

    made = SimpleNamespace(application_id="run", conf=None, spark_version="4.2.0", stop_returned=False)
    monkeypatch.setattr(attach, "_agent", None)
    monkeypatch.setattr(attach, "SparkInternals", lambda _: made)
    monkeypatch.setattr(attach, "Agent", lambda internals, _, identity: Begun(internals=internals, identity=identity, watches=False))
    monkeypatch.setattr(atexit, "register", lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        attach._attach(spark, "file:store")
    assert attach.current_agent() is None
    interrupted.append(False)
    assert attach._attach(spark, "file:store") is attach.current_agent() is not None


@pytest.mark.parametrize(("given", "folder"), [("file:drains", "drains"), ("configmap:pipelines/clicks", None), (None, None)])
def test_a_store_in_a_relative_folder_is_where_the_program_was_started(
    given: str | None, folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may go to a folder of its own before it makes its first session."""
    met: list[str | None] = []
    hooks: list[Any] = []
    monkeypatch.setattr(attach, "take_note_of_signals", lambda: None)
    monkeypatch.setattr(attach, "install", lambda on_session, _: hooks.append(on_session))
    monkeypatch.setattr(attach, "_meet", lambda _, location: met.append(location))
    monkeypatch.chdir(tmp_path)
    attach.install_hooks(given)
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    hooks[0](SimpleNamespace())
    assert met == [f"file:{tmp_path / folder}" if folder else given]


@pytest.mark.parametrize("session", [None, "pipeline"])
def test_what_is_no_session_is_named(session: Any) -> None:
    with pytest.raises(TypeError, match=f"attach: {session!r} is not a SparkSession"):
        attach.attach(session)


@pytest.mark.parametrize("store", [Path("drains"), 7])
def test_a_store_that_is_no_text_is_named(monkeypatch: pytest.MonkeyPatch, store: Any) -> None:
    monkeypatch.setattr(attach, "classic", lambda _: True)
    with pytest.raises(TypeError, match=r"attach: metadata_store .* is not a text like 'file:DIR'"):
        attach.attach(cast(SparkSession, type("Session", (), {"readStream": None})()), store)
