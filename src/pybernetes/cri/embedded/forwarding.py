"""Joins a client with a port of a pod: from inside the pod's network namespace, so that 127.0.0.1 is the pod's."""

from __future__ import annotations

import asyncio
import os
import socket

from pybernetes.net.streams.duplex import Duplex

CONNECT_TIMEOUT = 30.0  # seconds
_CHUNK = 1 << 16
_LOCAL = ((socket.AF_INET, "127.0.0.1", "IPv4"), (socket.AF_INET6, "::1", "IPv6"))


class Unreachable(Exception):
    """No process listens on the port."""


async def forward(namespace: str, port: int, client: Duplex) -> None:
    """Joins until the pod's side ends. Raises Unreachable. A client that has sent everything may still listen."""
    reader, writer = await connect(namespace, port)
    sending = asyncio.create_task(_send(client, writer))
    try:
        while data := await reader.read(_CHUNK):
            client.write(data)
            await client.drain()
    except OSError:
        pass  # one of them is gone
    finally:
        sending.cancel()
        writer.close()


async def connect(namespace: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a local port of a network namespace, by IPv4 or else IPv6. Raises Unreachable."""
    problems = []
    for family, address, name in _LOCAL:
        made = None
        try:
            made = socket_in(namespace, family)
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await asyncio.get_running_loop().sock_connect(made, (address, port))
            return await asyncio.open_connection(sock=made)
        except OSError as error:  # TimeoutError is one
            if made is not None:
                made.close()
            problems.append(f"{name}: {os.strerror(error.errno).lower() if error.errno else 'i/o timeout'}")
    why = ", ".join(problems)
    raise Unreachable(f'failed to connect to localhost:{port} inside namespace "{namespace}", {why}')


def socket_in(namespace: str, family: socket.AddressFamily) -> socket.socket:
    """A TCP socket that lives in a namespace (empty: our own), for any user. Raises OSError."""

    def make() -> socket.socket:
        made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    if not namespace:
        return make()
    from pybernetes.cni.errors import CNIError
    from pybernetes.cni.netlink.namespace import Namespace

    try:
        with Namespace(namespace) as inside:
            return inside.run(make)
    except CNIError as error:
        raise Unreachable(str(error)) from None


async def _send(client: Duplex, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await client.read():
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        pass
