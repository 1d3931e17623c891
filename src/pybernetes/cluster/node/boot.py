"""Follows a node from its start until it is Ready: `up` calls `Boot` again and again, and it never waits itself.

As soon as containerd answers it is given the images of the cluster that it does not have yet, the sandbox's first of
all, while the kubelet is still starting.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from pybernetes.cluster.admin import Admin, node_condition, node_ready
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import containerd, inside
from pybernetes.cluster.node.machine import KERNEL_BOOT_ID, Machine
from pybernetes.cluster.node.programs import find

# How often the API server is asked for the node while it boots.
ASK_EVERY = 0.025
# A program that ended so often while the node booted will not do better the next time.
ENOUGH_RESTARTS = 3
NO_NETWORK = "NetworkReady=false"
"""In the words of kubelets: what only the pods' network is missing for."""


class NodeError(ClusterError):
    """A program of the node keeps ending; `log` names its log."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


class Boot:
    """Calling it answers whether the node is Ready, else `trouble` says what is missing."""

    def __init__(
        self,
        layout: Layout,
        machine: Machine,
        admin: Admin,
        clock: Callable[[], float] = time.monotonic,
        *,
        with_network: bool = True,
    ) -> None:
        self.layout = layout
        self.machine = machine
        self.admin = admin
        self.clock = clock
        self.with_network = with_network
        """Without, the pods' network is brought by others, and the node is not Ready until then."""
        self.trouble = "it has not been started"
        self._imports: list[tuple[Path, subprocess.Popen[bytes]]] | None = None
        self._next_question = 0.0

    def __call__(self) -> bool:
        init = inside.init_process(self.layout, self.machine.name, plain=self.machine.isolation == "none")
        if init is None:
            self.trouble = "it has no init process"
            return False
        self._check_programs(init)
        return self._has_images(init) and self._is_ready(init)

    def _check_programs(self, init: int) -> None:
        for program in inside.PROGRAMS:
            if inside.restarts(init, program, self.machine.run) >= ENOUGH_RESTARTS:
                raise NodeError(f"the {program} of {self.machine.name} keeps ending", f"{self.machine.name}-{program}")

    def _has_images(self, init: int) -> bool:
        if self._imports is None:
            if not containerd.runs(inside.path(init, self.machine.socket)):
                self.trouble = "its container runtime does not answer"
                return False
            # Our own runtime looks for archives itself.
            missing = (
                missing_archives(self.layout, self.machine.name) if self.machine.socket == containerd.SOCKET else []
            )
            self._imports = [(archive, import_archive(init, archive)) for archive in missing]
        for archive, process in self._imports:
            if process.poll() is None:
                self.trouble = f"{archive.name} is being imported"
                return False
        for archive, process in self._imports:
            finish_import(self.layout, self.machine.name, archive, process)
        self._imports = []
        return True

    def _is_ready(self, init: int) -> bool:
        if self.clock() < self._next_question:
            return False
        self._next_question = self.clock() + ASK_EVERY
        try:
            code, node = self.admin.request("GET", f"/api/v1/nodes/{self.machine.name}")
        except OSError as error:
            self.trouble = f"the API server cannot be asked: {error}"
            return False
        if code != 200:
            self.trouble = "its kubelet has not registered it" if code == 404 else str(node.get("message", code))
            return False
        self.trouble = str(node_condition(node).get("message") or "its kubelet has not said that it is ready")
        # What it said before its last start does not count.
        ready = node_ready(node) or (not self.with_network and NO_NETWORK in self.trouble)
        return ready and _boot_of(node) == _read(inside.path(init, KERNEL_BOOT_ID))


def _boot_of(node: dict[str, object]) -> str | None:
    status = node.get("status")
    info = status.get("nodeInfo") if isinstance(status, dict) else None
    return info.get("bootID") if isinstance(info, dict) else None


def _read(path: str) -> str | None:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None


def missing_archives(layout: Layout, name: str) -> list[Path]:
    """The archives of the cluster's images that a node has not imported yet."""
    done = _imported(layout, name)
    return [path for path in sorted(layout.images.glob("*.tar")) if done.get(path.name) != _stamp(path)]


def import_archive(init: int, archive: Path) -> subprocess.Popen[bytes]:
    """Starts the import of an archive into a node's containerd."""
    socket_path = inside.path(init, containerd.SOCKET)
    command = [find("ctr") or "ctr", "-a", socket_path, "-n", "k8s.io", "images", "import", str(archive)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish_import(layout: Layout, name: str, archive: Path, process: subprocess.Popen[bytes]) -> None:
    """Waits for an import; a good one is remembered, a bad one raises with the words of `ctr`."""
    said, _ = process.communicate()
    if process.returncode != 0:
        lines = said.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise ClusterError(f"{name} cannot import {archive.name}: {lines[-1].removeprefix('ctr: ')}")
    done = _imported(layout, name)
    done[archive.name] = _stamp(archive)
    _marks(layout, name).write_text(json.dumps(done, indent=2) + "\n")


def _imported(layout: Layout, name: str) -> dict[str, str]:
    try:
        loaded = json.loads(_marks(layout, name).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return {str(key): str(value) for key, value in loaded.items()} if isinstance(loaded, dict) else {}


def _marks(layout: Layout, name: str) -> Path:
    return layout.node(name) / "imported.json"


def _stamp(archive: Path) -> str:
    state = archive.stat()
    return f"{state.st_size} {state.st_mtime_ns}"
