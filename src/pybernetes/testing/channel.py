"""Messages with descriptors on a unix socket: JSON, one message a packet (SOCK_SEQPACKET)."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import Any

MOST_BYTES = 128 * 1024


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a channel."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(channel: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send a message; its descriptors are duplicated. OSError if the other end is gone."""
    socket.send_fds(channel, [json.dumps(message).encode()], descriptors)


def receive(channel: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """The next message and its descriptors; None when the other end is closed."""
    data, descriptors, _, _ = socket.recv_fds(channel, MOST_BYTES, 4)
    if not data:
        return None, descriptors
    message: dict[str, Any] = json.loads(data)
    return message, descriptors
