"""Device nodes in a layer: the node's disk, its memory and its kernel log, under any name.

Vector: an image that brings /dev/sda with it.
"""

from __future__ import annotations

import os
import tarfile
from typing import Any

import pytest
from escape.images import entry, image
from escape.pods import Pod
from node.machine import Machine

NUMBERS = {"disk": None, "mem": (1, 1), "port": (1, 4), "kmsg": (1, 11), "loop": (7, 0), "fuse": (10, 229)}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_device_of_an_image_cannot_be_read(machine: Machine, name: str) -> None:
    disk = os.stat("/").st_dev
    major, minor = NUMBERS[name] or (os.major(disk), os.minor(disk))
    kind = tarfile.BLKTYPE if name in ("disk", "loop") else tarfile.CHRTYPE
    more: dict[str, Any] = {"devmajor": major, "devminor": minor, "mode": 0o666}
    made = image(machine, [entry("devices", tarfile.DIRTYPE), entry("devices/node", kind, **more)])
    with Pod(machine) as pod:
        answer = pod.sh(pod.sleeper(image=made), "exec 3< /devices/node && head -c 1 <&3")
    assert answer.code != 0, answer
    assert answer.code != -1, answer
