"""Volumes for tests: on SQLite and a folder, in this process or mounted by the real command."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pybernetes.objectfs.fuse import mount_point
from tools import PATIENCE, wait_until


class Mounts:
    """Mounts volumes with `pyb objectfs mount` in the foreground and unmounts what is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.meta = f"sqlite://{folder}/meta.db"
        self.clients: dict[Path, subprocess.Popen[bytes]] = {}

    def pyb(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "pybernetes", "objectfs", *words]
        return subprocess.run(command, check=check, capture_output=True, text=True, timeout=60)

    def status(self) -> Any:
        return json.loads(self.pyb("status", self.meta).stdout)

    def format(self, *flags: str) -> None:
        self.pyb("format", self.meta, "volume", "--bucket", str(self.folder / "bucket"), *flags)

    def mount(self, name: str, *flags: str) -> Path:
        place = self.folder / name
        place.mkdir(exist_ok=True)
        command = [sys.executable, "-P", "-m", "pybernetes", "objectfs", "mount", self.meta, str(place)]
        with (self.folder / f"{name}.log").open("ab") as log:
            begin = log.tell()
            client = subprocess.Popen(
                [*command, "--cache-dir", str(self.folder / "cache"), "--enable-xattr", *flags], stderr=log
            )
        self.clients[place] = client
        log_file = self.folder / f"{name}.log"
        wait_until(lambda: client.poll() is not None or "is ready at" in log_file.read_text()[begin:], "mounted")
        assert client.poll() is None, (self.folder / f"{name}.log").read_text()
        return place

    def umount(self, place: Path) -> None:
        server = self.server(place)
        connection = os.minor(os.stat(place).st_dev)
        mount_point.unmount(str(place))
        # Namespaces that were made meanwhile by others on this machine have copies of the mount, which keep it alive.
        control = self.folder / "fusectl"
        control.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "fusectl", "fusectl", control], check=True)
        with contextlib.suppress(OSError):
            (control / str(connection) / "abort").write_text("1")
        subprocess.run(["umount", control], check=True)
        client = self.clients.pop(place)
        try:
            assert client.wait(PATIENCE) == 0
        except subprocess.TimeoutExpired:
            os.kill(server, signal.SIGUSR1)
            raise AssertionError((self.folder / f"{place.name}.log").read_text()) from None

    def server(self, place: Path) -> int:
        """The process that answers the kernel; its parent only keeps the descriptor."""
        path = Path(f"/proc/{self.clients[place].pid}/task/{self.clients[place].pid}/children")
        wait_until(lambda: path.read_text().split(), "the server runs")
        return int(path.read_text().split()[0])

    def kill(self, place: Path) -> None:
        """The machine's end, as far as this mount sees: the keeper dies, the server too."""
        client = self.clients[place]
        server = self.server(place)
        for number in (client.pid, server):
            os.kill(number, signal.SIGKILL)
        del self.clients[place]
        client.wait()
        mount_point.unmount(str(place), lazy=True)

    def close(self) -> None:
        for place, client in self.clients.items():
            if mount_point.mounted(str(place)) is not None:
                mount_point.unmount(str(place), lazy=True)
            try:
                client.wait(30)
            except subprocess.TimeoutExpired:
                client.kill()
                client.wait()


@pytest.fixture
def mounts(tmp_path: Path) -> Iterator[Mounts]:
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("needs root and /dev/fuse")
    made = Mounts(tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def clean(mounts: Mounts) -> Callable[[], None]:
    """Fails unless fsck finds the volume whole."""

    def check() -> None:
        report = mounts.pyb("fsck", mounts.meta, check=False)
        assert report.returncode == 0, report.stdout
        assert "0 missing" in report.stdout

    return check
