"""Free TCP ports on 127.0.0.1."""

import contextlib
import json
import socket
from pathlib import Path


def _free(wanted: int) -> int | None:
    with socket.socket() as probe:
        # As servers do: a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return None
        return int(probe.getsockname()[1])


def remembered_ports(file: Path, names: tuple[str, ...]) -> dict[str, int]:
    """Return a free port per name, the same ones as last time where possible.

    Parameters
    ----------
    file : Path
        Remembers the ports, so that a kubeconfig stays valid over down and up.
    names : tuple of str
        What the ports are for.
    """
    known: dict[str, int] = {}
    with contextlib.suppress(FileNotFoundError, ValueError):
        known = json.loads(file.read_text())
    chosen: dict[str, int] = {}
    for name in names:
        port = _free(known.get(name, 0)) or _free(0)
        while port is None or port in chosen.values():
            port = _free(0)
        chosen[name] = port
    file.write_text(json.dumps(chosen))
    return chosen
