"""The way out of a network without one: an HTTP proxy that knows only CONNECT, for the runtime's pulls and for pods.

It listens in the cluster's network and connects from this machine's. What only this machine itself shall reach (its
loopback, link-local addresses such as a cloud's metadata) it does not reach for others.

Pods are strangers, and may leave connections open for ever. There is room for so many; one in which nothing was said
for long ends, and the most silent one gives way when another one has no room.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Final

from pybernetes.api.addresses import is_other_machine

PORT: Final = 3128
"""Where proxies usually are."""
_LONGEST_HEAD = 16 << 10
_TIMEOUT = 30.0
_CHUNK = 1 << 16
_MOST = 256
"""Connections at a time."""
_SILENCE = 15 * 60.0
"""Seconds without a byte in either direction after which a connection ends; as squid has it."""
_GIVES_WAY = 60.0
"""Seconds of silence after which it ends if there is no room for another."""


class Refused(Exception):
    """A status line."""


def serve(listener: socket.socket) -> None:
    """Serves, in threads, for as long as this process lives."""
    threading.Thread(target=_accept, args=(listener,), daemon=True).start()


class _Tunnel:
    """Two connections that are joined."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self._ends = (client, server)
        self.heard = time.monotonic()
        """When something was said in it."""

    def run(self) -> None:
        """Pass on what comes until both sides have ended, or none has said anything for long."""
        client, server = self._ends
        for each in self._ends:
            each.settimeout(_SILENCE)
        back = threading.Thread(target=self._copy, args=(server, client), daemon=True)
        back.start()
        self._copy(client, server)
        back.join()

    def end(self) -> None:
        """End it, also with open connections."""
        for each in self._ends:
            _shut(each, socket.SHUT_RDWR)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        while True:
            try:
                data = source.recv(_CHUNK)
                self.heard = time.monotonic()
                if not data:
                    break
                target.sendall(data)
            except TimeoutError:  # in this direction
                if time.monotonic() - self.heard >= _SILENCE:
                    self.end()
                    break
            except OSError:
                break
        _shut(target, socket.SHUT_WR)


def _shut(end: socket.socket, how: int) -> None:
    try:
        end.shutdown(how)
    except OSError:
        pass  # it has ended


class _Room:
    """For how many there is room, and who is there."""

    def __init__(self) -> None:
        self._places = threading.BoundedSemaphore(_MOST)
        self._tunnels: set[_Tunnel] = set()

    def enter(self) -> bool:
        """Takes a place, for which the most silent one may have to go; False if all of them talk."""
        if self._places.acquire(blocking=False):
            return True
        silent = min(self._tunnels.copy(), key=lambda each: each.heard, default=None)
        if silent is not None and time.monotonic() - silent.heard >= _GIVES_WAY:
            silent.end()
        return self._places.acquire(timeout=_TIMEOUT)

    def serve(self, client: socket.socket) -> None:
        """Serves one who has a place, and gives the place back."""
        try:
            with client:
                _serve(client, self._tunnels)
        finally:
            self._places.release()


def _accept(listener: socket.socket) -> None:
    room = _Room()
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            continue  # who came is gone already
        if room.enter():
            threading.Thread(target=room.serve, args=(client,), daemon=True).start()
        else:
            with client:
                _refuse(client, Refused("503 Too Many Connections"))


def _serve(client: socket.socket, tunnels: set[_Tunnel]) -> None:
    client.settimeout(_TIMEOUT)
    try:
        try:
            target, rest = _head(client)
            server = connect(target)
        except Refused as refused:
            _refuse(client, refused)
            return
        with server:
            tunnel = _Tunnel(client, server)
            tunnels.add(tunnel)
            try:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                server.sendall(rest)
                tunnel.run()
            finally:
                tunnels.discard(tunnel)
    except OSError:
        return


def _refuse(client: socket.socket, refused: Refused) -> None:
    try:
        client.sendall(f"HTTP/1.1 {refused}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    except OSError:
        pass  # best effort


def _head(client: socket.socket) -> tuple[str, bytes]:
    """The target of a request, and the bytes after it."""
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
    return is_other_machine(address)
