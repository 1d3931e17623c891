"""What the tests of the stores share: a clock, a real etcd, reading a watch."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pybernetes.store.base import Event, Watch
from tools import free_port


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of its own at a new folder; skips the test where none may be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("may not mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


class Clock:
    """A wall clock that tests can move."""

    def __init__(self) -> None:
        self.offset = 0.0

    def __call__(self) -> float:
        return time.time() + self.offset


class Etcd:
    """A real etcd on free loopback ports."""

    def __init__(self, folder: Path, *, name: str = "test", scheme: str = "http") -> None:
        self.folder = folder
        self.name = name
        self.url = f"{scheme}://127.0.0.1:{free_port()}"
        self.peer = f"http://127.0.0.1:{free_port()}"
        self.process: subprocess.Popen[bytes] | None = None
        self.arguments: dict[str, str] = {}

    def start(self, **more: str) -> None:
        """Start it, or start it again with the same arguments."""
        self.arguments = self.arguments or {
            "name": self.name,
            "data-dir": str(self.folder / "data"),
            "listen-client-urls": self.url,
            "advertise-client-urls": self.url,
            "listen-peer-urls": self.peer,
            "initial-advertise-peer-urls": self.peer,
            "initial-cluster": f"{self.name}={self.peer}",
            "log-level": "error",
            **more,
        }
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["etcd", *(f"--{name}={value}" for name, value in self.arguments.items())], stdout=log, stderr=log
            )

    def wait(self, context: ssl.SSLContext | None = None) -> None:
        """Until it can take writes."""
        deadline = time.monotonic() + 30
        while True:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(self.url + "/health", timeout=1, context=context) as answer,
            ):
                if b'"true"' in answer.read():
                    return
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.02)

    def kill(self) -> None:
        """With SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, 30 s at most."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - the condition has no event to wait for
            await asyncio.sleep(0.01)


async def take(watch: Watch, count: int) -> list[Event]:
    """The next `count` events of a watch."""
    events: list[Event] = []
    async with asyncio.timeout(20):
        iterator = aiter(watch)
        while len(events) < count:
            events += await anext(iterator)
    assert len(events) == count, events
    return events
