"""A machine for tests (see node/machine.py) with the embedded runtime instead of containerd."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

from node.machine import Machine, child_of

from pybernetes.cluster.images import oci
from pybernetes.cri import v1 as cri
from tools import PYTHON

PROGRAMS = ("busybox", "ip", "nsenter", "unshare")


def lacking() -> str:
    """Why no such machine can be had here, or nothing."""
    if os.geteuid() != 0:
        return "needs root"
    path = os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/sbin"
    missing = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


class EmbeddedMachine(Machine):
    """Namespaces with our runtime in them."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self.socket = folder / "runtime.sock"
        self.state = folder / "run"
        self.images = folder / "images"
        self.images.mkdir(parents=True)

    def start_containerd(self) -> None:
        """Starts the runtime and waits until it answers."""
        flags = ["--root", f"{self.folder}/lib", "--state", str(self.state), "--listen", str(self.socket)]
        flags += ["--cni-conf-dir", f"{self.folder}/cni", "--images", str(self.images)]
        command = shlex.join(self.enter([*PYTHON, "runtime", *flags]))
        with (self.folder / "runtime.log").open("ab") as log:
            self._containerd = subprocess.Popen(
                ["sh", "-c", f"{self.join()}; exec {command}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        asyncio.run(self._wait())

    def kill_runtime(self, number: int = signal.SIGKILL) -> None:
        """kill -9 of the runtime; what it started goes on."""
        assert self._containerd is not None
        os.kill(child_of(self._containerd.pid), number)
        self._containerd.wait()

    def import_image(self, image: oci.Image) -> None:
        """Puts an archive where the runtime looks."""
        oci.write(self.images / f"{len(list(self.images.iterdir()))}.tar", image)
        asyncio.run(self._take_in(image.names[0]))

    async def _take_in(self, name: str) -> None:
        async with self.runtime() as runtime:
            await runtime.pull_image(cri.PullImageRequest(image=cri.ImageSpec(image=name)))

    def log(self) -> str:
        """What the runtime and its launcher complained of."""
        found = [self.folder / "runtime.log", self.state / "launcher.log"]
        return "\n".join(each.read_text() for each in found if each.exists())
