"""A text server for Spark's socket source."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["lines_served"]


@contextmanager
def lines_served(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Serve the lines to the first connection and nothing to later ones; all stay open."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connections.append(connection)
                if len(connections) == 1:
                    connection.sendall("".join(f"{line}\n" for line in lines).encode())

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in connections:
                connection.close()
