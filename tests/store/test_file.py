"""What only a store in a folder has: permissions, and a lock that others may hold."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from pathlib import Path

import pytest
from spark_drain_store.channel import open_channel
from spark_drain_store.file import FileStore
from spark_drain_store.protocol import MAX_TOTAL_BYTES, StoreUnavailableError


def test_files_that_are_no_messages_are_left_alone(tmp_path: Path) -> None:
    """A folder of the project may be called ``reports`` already."""
    foreign = tmp_path / "store/reports/2026-q3.pdf"
    foreign.parent.mkdir(parents=True)
    foreign.write_bytes(bytes(2 * MAX_TOTAL_BYTES))
    reports = open_channel(f"file:{tmp_path}/store").reports
    seen = reports.read().version
    assert reports.write({"a": "1"}) != seen
    foreign.write_bytes(b"changed")
    assert reports.watch(reports.read().version, 0) is None
    reports.write({"a": None})
    assert reports.read().version == seen == ""
    assert foreign.read_bytes() == b"changed"


def test_no_link_is_followed(tmp_path: Path) -> None:
    """Part of what cannot be understood is said in a report, which others may read."""
    (tmp_path / "secret").write_text("password")
    (tmp_path / "store/requests").mkdir(parents=True)
    (tmp_path / "store/requests/drain-v1.a").symlink_to(tmp_path / "secret")
    assert open_channel(f"file:{tmp_path}/store").requests.read().entries == {}


def test_no_more_is_read_than_a_store_may_hold(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    (tmp_path / "a").write_bytes(bytes(3 * MAX_TOTAL_BYTES))
    assert len(store.read().entries["a"]) == MAX_TOTAL_BYTES + 1
    store.write({"a": None})
    assert store.read().entries == {}


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    """The other side may be another user of the same group."""
    before = os.umask(0o002)
    try:
        FileStore(tmp_path / "requests").write({"a": "1"})
    finally:
        os.umask(before)
    modes = {name: (tmp_path / "requests" / name).stat().st_mode & 0o777 for name in (".", ".lock", "a")}
    assert modes == {".": 0o775, ".lock": 0o664, "a": 0o664}


def test_a_lock_that_is_never_released_is_waited_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An application that attaches must not hang for a store: one that is away is looked at again later."""
    store = FileStore(tmp_path)
    store.write({"a": "1"})
    monkeypatch.setattr("spark_drain_store.file._LOCK_SECONDS", 0.2)
    with (tmp_path / ".lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreUnavailableError, match="is locked: a process has held"):
            store.read()
    assert store.read().entries == {"a": "1"}


@pytest.mark.parametrize("link", [".lock", ""])
def test_links_are_not_followed_to_files_of_others(tmp_path: Path, link: str) -> None:
    """Who may write the folder would have the driver make files where only the driver may."""
    folder, elsewhere = tmp_path / "requests", tmp_path / "elsewhere"
    if link:
        folder.mkdir()
    else:
        elsewhere.mkdir()
    (folder / link).symlink_to(elsewhere)
    store = FileStore(folder)
    for act in (store.read, lambda: store.write({"a": "1"})):
        with pytest.raises(StoreUnavailableError, match="symbolic link"):
            act()
    assert not elsewhere.exists() or not list(elsewhere.iterdir())


def test_a_process_that_is_forked_meanwhile_does_not_keep_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An application may fork workers, which inherit what is open, while the agent looks at its store."""
    store = FileStore(tmp_path)
    store.write({"a": "1"})
    workers: list[int] = []

    def fork(kind: int, descriptor: int) -> None:
        fcntl.flock(descriptor, kind)
        if (worker := os.fork()) == 0:
            signal.pause()
        workers.append(worker)

    with monkeypatch.context() as patched:
        patched.setattr(store, "_wait_for", lambda descriptor, kind: fork(kind, descriptor))
        store.read()
    try:
        monkeypatch.setattr("spark_drain_store.file._LOCK_SECONDS", 0.2)
        FileStore(tmp_path).write({"a": "2"})
    finally:
        os.kill(workers[0], signal.SIGKILL)
        os.waitpid(workers[0], 0)


def test_a_folder_that_cannot_be_looked_into_is_away(tmp_path: Path) -> None:
    """The application that the agent lives in must not end for it."""
    store = FileStore(tmp_path / ("x" * 300))  # no permission is another such error, but not for root
    for look in (store.read, lambda: store.watch("", 0), lambda: store.write({"a": "1"})):
        with pytest.raises(StoreUnavailableError, match="File name too long"):
            look()


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is tried again and again."""
    store = FileStore(tmp_path)
    store.write({"a": "1"})

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("spark_drain_store.file.os.fsync", full)
        with pytest.raises(StoreUnavailableError, match="No space left"):
            store.write({"a": "2"})
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "a"}
    assert store.read().entries == {"a": "1"}


def test_a_folder_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever folder the application goes to."""
    monkeypatch.chdir(tmp_path)
    channel = open_channel("file:drains")
    channel.requests.write({"a": "1"})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert channel.requests.read().entries == {"a": "1"}
    channel.reports.write({"a": "2"})
    assert not list(Path.cwd().iterdir())
