"""A container that mounts: by itself it may not, and in a user namespace of its own it sees no more than before.

Vectors: CVE-2022-0492 (release_agent by a cgroup namespace), fresh /proc and sysfs without the masks, remounts that
take a read-only flag away, unmounting what hides something, pivoting to the node by `mount --move`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from escape.conftest import Inside

PLAIN = {
    "tmpfs": "mount -t tmpfs none /mnt",
    "remount_proc_sys": "mount -o remount,rw /proc/sys",
    "remount_sys": "mount -o remount,rw /sys",
    "fresh_proc": "mkdir -p /tmp/p && mount -t proc none /tmp/p",
    "unmask": "umount /proc/kcore || umount -l /proc/keys",
    "take_dev_away": "umount -l /dev",
    "move_root": "mkdir -p /tmp/m && mount --move /proc /tmp/m",
    "join_init": "nsenter -t 1 -m -p true && nsenter -t 1 -U true",
    "chroot_out": "chroot /proc/1/root/../.. sh -c 'test -e /proc/1/root/etc/machine-id'",
}
IN_NAMESPACE = {
    "fresh_proc": "mkdir -p /tmp/p && mount -t proc none /tmp/p && head -c 1 /tmp/p/kcore",
    "fresh_sysfs": "mkdir -p /tmp/s && mount -t sysfs none /tmp/s && ls /tmp/s/firmware",
    "remount_proc_sys": "mount -o remount,rw /proc/sys && echo x > /proc/sys/kernel/core_pattern",
    "unmask": "umount /proc/kcore && head -c 1 /proc/kcore",
    "release_agent": "mkdir -p /tmp/c && mount -t cgroup -o memory none /tmp/c && echo /x > /tmp/c/release_agent",
    "device": "mount -t tmpfs none /mnt && mknod /mnt/d b 7 0 && head -c 1 /mnt/d",
    "bind_core_pattern": "mount --bind /proc/sys /tmp; mount -o remount,bind,rw /tmp; echo > /tmp/kernel/core_pattern",
}


@pytest.mark.parametrize("vector", PLAIN)
def test_a_container_mounts_nothing(inside: Inside, vector: str) -> None:
    code, said = inside.sh(PLAIN[vector])
    assert code not in (0, -1), said


@pytest.mark.parametrize("vector", IN_NAMESPACE)
def test_a_user_namespace_of_its_own_shows_nothing_more(inside: Inside, vector: str) -> None:
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    # -C is not in every busybox.
    code, said = inside.sh(f"unshare -U -r -m -n -p -f sh -c '{IN_NAMESPACE[vector]}'")
    assert code not in (0, -1), said
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before
