"""The process that everything hangs on."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import holder, holding
from devcluster.errors import DevclusterError
from devcluster.holding import Client
from tests.support.waiting import eventually


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # Longer than the path of a unix socket may be.
    return tmp_path / ("long-" * 20) / "state"


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    process = holding.launch(folder, tied=True)
    yield Client(folder)
    process.kill()
    process.wait()
    if process.stdin:
        process.stdin.close()


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_a_daemon_is_started_once_and_again_after_it_died(client: Client) -> None:
    client.start("sleeper", ["sleep", "300"])
    first = client.running()["sleeper"]
    client.start("sleeper", ["sleep", "300"])
    assert client.running() == {"sleeper": first}
    client.signal("sleeper", signal.SIGKILL)
    eventually(lambda: client.running() == {})
    client.start("sleeper", ["sleep", "300"])
    assert client.running()["sleeper"] != first


def test_what_a_daemon_last_said_is_in_the_error(client: Client) -> None:
    client.start("talker", ["sh", "-c", 'echo "$WORD in $PWD" >&2; exit 3'], {"WORD": "spoken"})
    eventually(lambda: client.running() == {})
    with pytest.raises(DevclusterError, match=rf"talker ended with 3, see .*\nspoken in {client.folder}"):
        client.check("talker")
    client.check("another")


def test_a_program_that_is_not_there_is_named(client: Client) -> None:
    client.start("nothing", ["/no/such/program"])
    eventually(lambda: client.running() == {})
    with pytest.raises(DevclusterError, match=r"nothing ended with 127, see .*\n/no/such/program: .*No such file"):
        client.check("nothing")


def test_daemons_end_with_the_holder(client: Client, folder: Path) -> None:
    client.start("sleeper", ["sleep", "300"])
    pid = client.running()["sleeper"]
    assert holding.end(folder)
    eventually(lambda: gone(pid))
    assert holding.holder_pid(folder) is None
    assert not holding.end(folder)


def test_a_folder_has_one_holder(client: Client, folder: Path) -> None:
    pid = holding.holder_pid(folder)
    assert pid is not None
    done = subprocess.run(
        [sys.executable, "-I", str(holder.__file__), str(folder)], check=False, capture_output=True, text=True, timeout=10
    )
    assert done.returncode == 1
    assert "another one holds" in done.stderr
    assert holding.holder_pid(folder) == pid
    assert client.running() == {}


def test_a_number_left_in_the_lock_file_is_not_taken_for_a_holder(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "holder.lock").write_text(str(os.getpid()))
    assert holding.holder_pid(folder) is None
    assert not holding.end(folder)


def test_unreadable_requests_do_not_end_it(client: Client) -> None:
    client.start("sleeper", ["sleep", "300"])
    with pytest.raises(DevclusterError, match="no such request: 'dance'"):
        client._ask({"do": "dance"})
    with pytest.raises(DevclusterError, match="did not answer"):
        client._ask({"do": "start"})
    assert list(client.running()) == ["sleeper"]
