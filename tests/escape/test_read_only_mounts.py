"""A read-only volume, and one below it: not written to by a remount, a bind mount, or a user namespace of one's own.

Vectors: `mount -o remount,rw` in a user namespace, bind mounts elsewhere, `readOnlyRootFilesystem`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from escape.pods import Pod, confined
from node.machine import Machine

from pybernetes.cri import v1 as cri

WAYS = {
    "write": "touch /data/made",
    "remount": "mount -o remount,rw /data; touch /data/made",
    "remount_bind": "mount -o remount,bind,rw /data; touch /data/made",
    "bind_elsewhere": "mkdir -p /tmp/b; mount --bind /data /tmp/b; mount -o remount,bind,rw /tmp/b; touch /tmp/b/made",
    "overlay": "mkdir /tmp/w; mount -t overlay o -o lowerdir=/tmp,upperdir=/data,workdir=/tmp/w /mnt; touch /mnt/made",
    "proc_root": "touch /proc/self/root/data/made /proc/1/root/data/made",
    "hard_link": "ln /data/own /tmp/own; echo x >> /tmp/own",
}


@pytest.mark.parametrize("alone", [False, True], ids=["plain", "user_namespace"])
@pytest.mark.parametrize("way", WAYS)
def test_a_read_only_volume_stays_as_it_is(machine: Machine, way: str, alone: bool) -> None:
    volume = Path(tempfile.mkdtemp(dir=machine.folder))
    volume.chmod(0o777)
    (volume / "own").write_text("own")
    (volume / "own").chmod(0o666)
    mount = cri.Mount(host_path=str(volume), container_path="/data", readonly=True)
    script = f"unshare -U -r -m sh -c '{WAYS[way]}'" if alone else WAYS[way]
    with Pod(machine) as pod:
        pod.sh(pod.sleeper(mounts=[mount]), script)
    assert [each.name for each in volume.iterdir()] == ["own"]
    assert (volume / "own").read_text() == "own"


def test_a_read_only_root_is_not_written_to(machine: Machine) -> None:
    linux = confined()
    linux.security_context.readonly_rootfs = True
    with Pod(machine) as pod:
        id = pod.sleeper(linux=linux)
        for place in ("/made", "/etc/made", "/bin/sh", "/proc/self/root/made"):
            assert pod.sh(id, f"echo x > {place}").code != 0
