"""How much of what was sent the client's machine has confirmed.

A transport only knows what it has not yet handed on; over TLS not even that, because the encrypted bytes lie in the
transport below. The kernel knows.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios

_BYTES_ACKED = 120  # where Linux's struct tcp_info has tcpi_bytes_acked


def unconfirmed(transport: asyncio.WriteTransport) -> int:
    """Bytes that are written and not confirmed; 0 if the connection is closed."""
    try:
        queued = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, AttributeError):
        return 0
    return transport.get_write_buffer_size() + int(struct.unpack("i", queued)[0])


def confirmed(transport: asyncio.Transport) -> int:
    """Bytes that were confirmed so far."""
    try:
        info = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_ACKED + 8)
    except (OSError, AttributeError):
        return 0
    return int(struct.unpack_from("Q", info, _BYTES_ACKED)[0]) if len(info) >= _BYTES_ACKED + 8 else 0
