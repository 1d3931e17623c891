"""Opens connections to containers, with Go's words for what goes wrong: users search for them."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from functools import cache

_WORDS = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ECONNRESET: "connection reset by peer",
    errno.ETIMEDOUT: "connection timed out",
}


class DialFailed(Exception):
    """No connection; the text is Go's."""


def address(host: str, port: int) -> str:
    """`host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def dial(host: str, port: int, within: float) -> socket.socket:
    """A connected socket. Raises DialFailed."""
    where = address(host, port)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(within):
            try:
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except OSError:
                raise DialFailed(f"dial tcp: lookup {host}: no such host") from None
            failure = ""
            for family, kind, protocol, _, target in found:
                connection = socket.socket(family, kind, protocol)
                try:
                    connection.setblocking(False)
                    await loop.sock_connect(connection, target)
                    return connection
                except OSError as error:
                    connection.close()
                    failure = failure or f"dial tcp {where}: connect: {words(error)}"
                except BaseException:
                    connection.close()
                    raise
            raise DialFailed(failure or f"dial tcp {where}: no suitable address found")
    except TimeoutError:
        raise DialFailed(f"dial tcp {where}: i/o timeout") from None


def words(error: OSError) -> str:
    """Go's text for an errno, as upstream's probe messages have it."""
    number = error.errno or 0
    return _WORDS.get(number) or os.strerror(number).lower() if number else str(error)


@cache
def insecure_tls() -> ssl.SSLContext:
    """TLS that believes any certificate: a probe does not verify the server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
