"""Keeps the descriptor of a mount while the server that answers it comes and goes.

The mount ends when the last descriptor of `/dev/fuse` is closed. So a process that does nothing else (the `mount`
command, or the CSI plugin for its mount pods) keeps one: a server connects to it by a unix socket, takes the descriptor
that is held, or leaves the one that it made. Messages are JSON, one a packet, with the descriptor beside them.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from pathlib import Path
from typing import Any, NamedTuple

log = logging.getLogger(__name__)
LARGEST = 64 << 10
RECONNECT_SECONDS = 1.0


class Held(NamedTuple):
    """A mount that a server left: its descriptor, and what a successor needs to know."""

    device: int
    state: dict[str, Any]


def send(connection: socket.socket, message: dict[str, Any], device: int | None = None) -> None:
    socket.send_fds(connection, [json.dumps(message).encode()], [] if device is None else [device])


def receive(connection: socket.socket) -> tuple[dict[str, Any], int | None] | None:
    """A message with its descriptor; None at the end."""
    try:
        data, descriptors, _, _ = socket.recv_fds(connection, LARGEST, 1)
    except OSError:
        return None
    if not data:
        return None
    device = descriptors[0] if descriptors else None
    if device is not None:
        os.set_inheritable(device, False)
    return json.loads(data), device


class HeldMounts:
    """The held descriptors, by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, Held] = {}

    def get(self, name: str) -> Held | None:
        return self._held.get(name)

    def put(self, name: str, held: Held) -> None:
        with self._lock:
            old, self._held[name] = self._held.get(name), held
        if old is not None:
            os.close(old.device)

    def drop(self, name: str) -> None:
        with self._lock:
            old = self._held.pop(name, None)
        if old is not None:
            os.close(old.device)

    def names(self) -> list[str]:
        return list(self._held)

    def answer(self, name: str, message: dict[str, Any], device: int | None, connection: socket.socket) -> str:
        """Does what a server asks for; returns the message's kind."""
        kind = str(message.get("kind"))
        if kind == "take":
            held = self.get(name)
            send(connection, {} if held is None else held.state, None if held is None else held.device)
        elif kind == "leave" and device is not None:
            self.put(name, Held(device, message["state"]))
        elif kind == "ended":
            self.drop(name)
        return kind


class HolderServer:
    """Holds mounts for servers that connect to a socket: the first packet is the mount's name."""

    def __init__(self, path: Path) -> None:
        self._path, self.held = path, HeldMounts()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(str(path))
        os.chmod(path, 0o600)
        self._socket.listen(64)
        threading.Thread(target=self._accept, name="objectfs-holder", daemon=True).start()

    def close(self) -> None:
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            first = receive(connection)
            if first is None or "name" not in first[0]:
                return
            name = str(first[0]["name"])
            while (found := receive(connection)) is not None:
                try:
                    self.held.answer(name, *found, connection)
                except (OSError, KeyError, TypeError) as error:
                    log.error("holding mount %s: %s", name, error)


class Holder:
    """A server's side: takes what is held for it, and leaves what it made, again if the holder was restarted."""

    def __init__(self, connection: socket.socket, name: str = "", path: str = "") -> None:
        self._connection, self._name, self._path = connection, name, path
        self._left: tuple[dict[str, Any], int] | None = None

    @classmethod
    def at(cls, path: str, name: str) -> Holder:
        """The holder that listens at a path."""
        return cls(_connect(path, name), name, path)

    def take(self) -> Held | None:
        send(self._connection, {"kind": "take"})
        found = receive(self._connection)
        if found is None or found[1] is None:
            return None
        return Held(found[1], found[0])

    def leave(self, device: int, state: dict[str, Any]) -> None:
        self._left = state, device
        send(self._connection, {"kind": "leave", "state": state}, device)
        if self._path:
            threading.Thread(target=self._stay, name="objectfs-holder", daemon=True).start()

    def say(self, kind: str, **fields: Any) -> None:
        """Tells the holder something; one that is gone does not matter."""
        try:
            send(self._connection, {"kind": kind, **fields})
        except OSError:
            pass

    def _stay(self) -> None:
        """A holder that was restarted gets the descriptor again."""
        pause = threading.Event()
        while self._left is not None:
            if receive(self._connection) is not None:
                continue
            pause.wait(RECONNECT_SECONDS)
            try:
                connection = _connect(self._path, self._name)
                send(connection, {"kind": "leave", "state": self._left[0]}, self._left[1])
            except OSError:
                continue
            self._connection.close()
            self._connection = connection


def _connect(path: str, name: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(path)
        send(connection, {"name": name})
    except OSError:
        connection.close()
        raise
    return connection
