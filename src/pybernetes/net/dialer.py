"""Connections to others that leave nothing behind when their task is cancelled.

uvloop drops the socket without a word when `create_connection` is cancelled after the connection was made and before
its own next step. Where the loop is busy the handshake may be over by then: the protocol has heard that it is
connected and never hears of an end, and TLS writes to a socket that is closed, which is a traceback in the log.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, TypeVar

P = TypeVar("P", bound=asyncio.Protocol)


async def connect(protocol: P, *, tls: ssl.SSLContext | None, server_name: str, **where: Any) -> P:
    """Connect a protocol, which keeps its `transport`, to `host` and `port` or by `sock`; as `create_connection`.

    If this is cancelled the protocol's `connection_lost` is called, perhaps twice.
    """
    name = server_name if tls else None
    try:
        await asyncio.get_running_loop().create_connection(lambda: protocol, ssl=tls, server_hostname=name, **where)
    except asyncio.CancelledError:
        transport: asyncio.Transport | None = getattr(protocol, "transport", None)
        if transport is not None:
            transport.abort()
            protocol.connection_lost(None)
        raise
    return protocol


async def open_streams(
    *, tls: ssl.SSLContext | None, server_name: str, limit: int = 1 << 16, **where: Any
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The same with a reader and a writer; as `asyncio.open_connection`."""
    reader = asyncio.StreamReader(limit)
    protocol = await connect(_Streams(reader), tls=tls, server_name=server_name, **where)
    return reader, asyncio.StreamWriter(protocol.transport, protocol, reader, asyncio.get_running_loop())


class _Streams(asyncio.StreamReaderProtocol):
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        super().connection_made(transport)
