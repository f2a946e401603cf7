"""Ports of the machine that lead into the cluster's network.

Started in the cluster's pid namespace, so that it ends with the cluster, but in
the machine's network: it binds its listeners there, then moves itself into the
cluster's network, where its outgoing connections are made. Sockets stay in the
network they were made in.

Run as a script, standard library only.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_CHUNK = 1 << 16


def enter_network(namespace: Path) -> None:
    """Move the calling thread into a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(namespace, os.O_RDONLY)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(namespace))
    os.close(descriptor)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await source.read(_CHUNK):
            target.write(chunk)
            await target.drain()
    with contextlib.suppress(OSError, RuntimeError):
        target.write_eof()


async def _serve(listener: socket.socket, host: str, port: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        for stream in (writer, far_writer):
            stream.close()

    server = await asyncio.start_server(connected, sock=listener)
    await server.serve_forever()


async def _serve_all(listeners: list[tuple[socket.socket, str, int]]) -> None:
    await asyncio.gather(*(_serve(*entry) for entry in listeners))


def main() -> None:
    """Arguments: lock file, then PORT=HOST:PORT for each way in."""
    lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.fcntl(lock, fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))
    listeners = []
    for word in sys.argv[2:]:
        near, _, far = word.partition("=")
        host, _, port = far.rpartition(":")
        listener = socket.create_server(("127.0.0.1", int(near)), backlog=128)
        listeners.append((listener, host, int(port)))
    enter_network(Path("/proc/1/ns/net"))
    asyncio.run(_serve_all(listeners))


if __name__ == "__main__":
    main()
