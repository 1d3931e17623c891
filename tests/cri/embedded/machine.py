"""A machine for tests (see node/machine.py) with the embedded runtime."""

from __future__ import annotations

import asyncio
from pathlib import Path

from node.machine import Machine

from pybernetes.cluster.images import oci
from pybernetes.cri import v1 as cri
from tools import PYTHON


class EmbeddedMachine(Machine):
    """Namespaces with our runtime in them."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self.socket = folder / "runtime.sock"
        self.state = folder / "run"
        self.images = folder / "images"
        self.images.mkdir(parents=True)

    def command(self) -> list[str]:
        """`pyb runtime`."""
        flags = ["--root", f"{self.folder}/lib", "--state", str(self.state), "--listen", str(self.socket)]
        return [*PYTHON, "runtime", *flags, "--cni-conf-dir", f"{self.folder}/cni", "--images", str(self.images)]

    def import_image(self, image: oci.Image) -> None:
        """Puts an archive where the runtime looks."""
        oci.write(self.images / f"{len(list(self.images.iterdir()))}.tar", image)
        asyncio.run(self._take_in(image.names[0]))

    async def _take_in(self, name: str) -> None:
        async with self.runtime() as runtime:
            await runtime.pull_image(cri.PullImageRequest(image=cri.ImageSpec(image=name)))

    def cgroups(self, *ids: str) -> list[str]:
        """The cgroups of sandboxes and containers; those of others may come and go meanwhile."""
        names = " -o ".join(f"-name {id}" for id in ids)
        return self.run("sh", "-c", f"find /sys/fs/cgroup {names} 2>/dev/null || true").split()

    def log(self) -> str:
        """What the runtime and its launcher complained of."""
        found = [self.folder / "runtime.log", self.state / "launcher.log"]
        return "\n".join(each.read_text() for each in found if each.exists())
