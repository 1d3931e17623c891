"""The way out of a network without one: an HTTP proxy that knows only CONNECT, for the runtime's pulls and for pods.

It listens in the cluster's network and connects from this machine's. What only this machine itself shall reach (its
loopback, link-local addresses such as a cloud's metadata) it does not reach for others.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from typing import Final

PORT: Final = 3128
"""Where proxies usually are."""
_LONGEST_HEAD = 16 << 10
_TIMEOUT = 30.0
_CHUNK = 1 << 16
_MOST = 256
"""Connections at a time."""


class Refused(Exception):
    """A status line."""


def serve(listener: socket.socket) -> None:
    """Serves, in threads, for as long as this process lives."""
    threading.Thread(target=_accept, args=(listener,), daemon=True).start()


def _accept(listener: socket.socket) -> None:
    room = threading.BoundedSemaphore(_MOST)

    def one(client: socket.socket) -> None:
        try:
            with client:
                _serve(client)
        finally:
            room.release()

    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            continue  # who came is gone already
        room.acquire()
        threading.Thread(target=one, args=(client,), daemon=True).start()


def _serve(client: socket.socket) -> None:
    client.settimeout(_TIMEOUT)
    try:
        try:
            target, rest = _head(client)
            server = connect(target)
        except Refused as refused:
            client.sendall(f"HTTP/1.1 {refused}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            return
        with server:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            server.sendall(rest)
            client.settimeout(None)
            server.settimeout(None)
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            back.start()
            _copy(client, server)
            back.join()
    except OSError:
        return


def _head(client: socket.socket) -> tuple[str, bytes]:
    """Whom a request wants to reach, and what came after it."""
    head = b""
    while b"\r\n\r\n" not in head:
        arrived = client.recv(4096)
        if not arrived or len(head) > _LONGEST_HEAD:
            raise Refused("400 Bad Request")
        head += arrived
    first, _, _ = head.partition(b"\r\n")
    words = first.decode("latin-1").split(" ")
    if len(words) != 3 or words[0] != "CONNECT":
        raise Refused("405 Only CONNECT")
    return words[1], head.partition(b"\r\n\r\n")[2]


def connect(target: str) -> socket.socket:
    """A connection to `HOST:PORT`. Raises Refused."""
    host, _, port = target.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise Refused("400 Bad Request")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError:
        raise Refused("502 No Such Host") from None
    allowed = [address for *_, address in found if reachable(str(address[0]))]
    if not allowed:
        raise Refused("403 Forbidden")
    for address in allowed:
        try:
            return socket.create_connection((str(address[0]), int(port)), _TIMEOUT)
        except OSError:
            continue
    raise Refused("502 Bad Gateway")


def reachable(address: str) -> bool:
    """Whether others may reach an address through this machine."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return not (found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast)


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
    except OSError:
        pass
    try:
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
