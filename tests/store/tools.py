"""What the tests of the stores share: a clock, a real etcd, reading a watch."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from pybernetes.store.base import Event, Watch


class Clock:
    """A wall clock that tests can move."""

    def __init__(self) -> None:
        self.offset = 0.0

    def __call__(self) -> float:
        return time.time() + self.offset


class Etcd:
    """A real etcd on a free loopback port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.peer_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        peer = f"http://127.0.0.1:{self.peer_port}"
        arguments = {
            "name": "test",
            "data-dir": str(self.folder / "data"),
            "listen-client-urls": self.url,
            "advertise-client-urls": self.url,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"test={peer}",
            "log-level": "error",
        }
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["etcd", *(f"--{name}={value}" for name, value in arguments.items())], stdout=log, stderr=log
            )

    def wait(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(self.url + "/health", timeout=1) as answer:
                if b'"true"' in answer.read():
                    return
            if time.monotonic() > deadline:
                raise AssertionError((self.folder / "log").read_text())
            time.sleep(0.02)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


async def take(watch: Watch, count: int) -> list[Event]:
    """The next `count` events of a watch."""
    events: list[Event] = []
    async with asyncio.timeout(20):
        iterator = aiter(watch)
        while len(events) < count:
            events += await anext(iterator)
    assert len(events) == count, events
    return events
