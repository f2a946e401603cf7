"""Free TCP ports on 127.0.0.1."""

import contextlib
import json
import random
import socket
from pathlib import Path

_FIRST = 20000
_LAST = 29999
"""Below those of Kubernetes' services, and of connections: one of these that is free may be taken a moment later."""


def _is_free(wanted: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return False
        return True


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
        port = known.get(name) or random.randint(_FIRST, _LAST)
        while port in chosen.values() or not _is_free(port):
            port = random.randint(_FIRST, _LAST)
        chosen[name] = port
    file.write_text(json.dumps(chosen))
    return chosen
