"""Volumes that are file systems of their own: a local block device, a folder of an NFS server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pybernetes.api.core.v1 import (
    LocalVolumeSource,
    NFSVolumeSource,
    PersistentVolume,
    PersistentVolumeSpec,
    Pod,
    PodSpec,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.cri.mounting import mounts, unmount
from pybernetes.kubelet.node.facts import NodeFacts
from pybernetes.kubelet.service_account_tokens import Tokens
from pybernetes.kubelet.volumes import filesystems, local, nfs
from pybernetes.kubelet.volumes.host import Host

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    tokens: Any = object.__new__(Tokens)
    yield Host(tmp_path, NodeFacts("node-1", [], {}, {}), None, None, tokens, lambda *_: None, False, None)
    for each in reversed(mounts(tmp_path)):
        unmount(each.path)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    image = tmp_path / "disk.img"
    with image.open("wb") as file:
        os.ftruncate(file.fileno(), 8 << 20)
    made = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True)
    yield made.stdout.strip()
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


def pod(uid: str) -> Pod:
    return Pod(metadata=ObjectMeta(name="web", namespace="default", uid=uid), spec=PodSpec())


def volume(device: str, **more: Any) -> PersistentVolume:
    source = LocalVolumeSource(path=device, **more)
    return PersistentVolume(metadata=ObjectMeta(name="pv"), spec=PersistentVolumeSpec(local=source))


def test_a_device_is_formatted_once_mounted_for_all_pods_and_unmounted_after_the_last(host: Host, device: str) -> None:
    wanted = volume(device)
    for uid in ("u1", "u2"):
        for _ in range(2):
            found, new, warning = local.find(host, pod(uid), wanted, "v", read_only=uid == "u2")
        assert (new, warning) == (False, "")
    (host.volume_folder("u1", local.PLUGIN, "pv") / "file").write_text("kept")
    assert (found.path / "file").read_text() == "kept"
    with pytest.raises(OSError, match="Read-only"):
        (found.path / "other").touch()
    for uid, left in (("u1", 1), ("u2", 0)):
        unmount(host.volume_folder(uid, local.PLUGIN, "pv"))
        local.release(host.root)
        assert len(mounts(host.root / "plugins")) == left
    # What is on the device stays there, and is not formatted away as something else.
    found, _, _ = local.find(host, pod("u3"), volume(device, fs_type="ext4"), "v", read_only=False)
    assert (found.path / "file").read_text() == "kept"
    unmount(found.path)
    local.release(host.root)
    with pytest.raises(OSError, match="failed to mount the volume as 'xfs', it already contains ext4"):
        local.find(host, pod("u4"), volume(device, fs_type="xfs"), "v", read_only=False)


def test_an_empty_device_that_is_only_read_and_a_file_system_without_its_program_are_refused(
    host: Host, device: str
) -> None:
    with pytest.raises(OSError, match=f"cannot mount unformatted disk {device} as it is read only"):
        filesystems.mount_device(device, host.root / "m", "", (), read_only=True)
    with pytest.raises(OSError, match=r"the node has no mkfs\.nosuch, which fsType nosuch needs"):
        filesystems.mount_device(device, host.root / "m", "nosuch", (), read_only=False)


async def test_a_folder_of_a_server_is_mounted_by_mount_with_its_options(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, notes = tmp_path / "bin", tmp_path / "notes"
    source = NFSVolumeSource(server="fd00::1", path="/exports/a", read_only=True)
    monkeypatch.setattr(filesystems, "PATH", str(programs))
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(OSError, match=r"the node has no mount\.nfs, which nfs volumes need \(package nfs-common\)"):
        await nfs.set_up_source(host, pod("u1"), source, "v", "pv", ())
    assert not host.volume_folder("u1", nfs.PLUGIN, "pv").exists()
    # A mount(8) that notes its words and mounts something else.
    programs.mkdir()
    for name, script in (
        ("mount.nfs", "exit 1"),
        ("mount", f'echo "$@" >> {notes}; for target; do :; done; exec /bin/mount -t tmpfs none "$target"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    for _ in range(2):
        found = await nfs.set_up_source(host, pod("u1"), source, "v", "pv", ("nfsvers=4.2",))
    assert found.read_only
    assert notes.read_text() == f"-t nfs -o nfsvers=4.2,ro [fd00::1]:/exports/a {found.path}\n"
