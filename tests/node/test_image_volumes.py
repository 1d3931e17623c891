"""Images as volumes with a containerd that cannot mount them itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from node.containerd_machine import ContainerdMachine
from node.machine import BUSYBOX
from node.runtimes import only

from pybernetes.cri import v1 as cri
from pybernetes.cri.containerd_snapshots import ImageViews
from pybernetes.cri.mounting import mounts, unmount
from pybernetes.kubelet.container.config_error import ConfigError
from pybernetes.kubelet.volumes.base import MountedVolume
from pybernetes.kubelet.volumes.image import ImageMounts

pytestmark = only("containerd")
VOLUME = MountedVolume("v", Path(), read_only=True, image=BUSYBOX)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for each in reversed(mounts(tmp_path)):
        unmount(each.path)


async def test_an_image_is_mounted_read_only_and_given_back(machine: ContainerdMachine, root: Path) -> None:
    async with machine.runtime() as runtime:
        images = ImageMounts(root, ImageViews(runtime))
        found = await images.mount("u1", VOLUME, BUSYBOX)
        assert found.path == root / "pods/u1/volumes/kubernetes.io~image/v"
        assert "busybox" in os.listdir(found.path / "bin")
        with pytest.raises(OSError, match="Read-only file system"):
            os.mkdir(found.path / "new")
        assert await images.mount("u1", VOLUME, BUSYBOX) == found
        assert len(mounts(root)) == 1
        unmount(found.path)
        assert await images.mount("u1", VOLUME, BUSYBOX) == found  # after a reboot the view is still there
        assert images.names("u1") == ["v"]
        unmount(found.path)
        await images.release("u1")
        await images.release("u1")
        assert "pybernetes-image-volume" not in machine.run(*machine.ctr(), "snapshots", "ls")


async def test_an_image_that_is_not_there_is_refused(machine: ContainerdMachine, root: Path) -> None:
    async with machine.runtime() as runtime:
        status = await runtime.image_status(cri.ImageStatusRequest(image=cri.ImageSpec(image="example.com/none")))
        assert not status.image.id
        with pytest.raises(ConfigError, match=r"failed to mount image example.com/none for volume v: .*not found"):
            await ImageMounts(root, ImageViews(runtime)).mount("u1", VOLUME, "example.com/none")
