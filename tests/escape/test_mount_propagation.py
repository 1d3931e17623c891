"""Mounts that a container makes, in a user namespace of its own, do not appear on the node or in other containers.

Vector: volumes that are shared with the node (`mountPropagation`), and a container that is not trusted with it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from escape.pods import Pod
from escape.runtimes import root
from node.machine import Machine

from pybernetes.cri import v1 as cri

pytestmark = root
MOUNT = "unshare -U -r -m sh -c 'mount -t tmpfs none /data && touch /data/made && sleep 0.3'; mount -t tmpfs none /data"


@pytest.mark.parametrize("propagation", [cri.PROPAGATION_PRIVATE, cri.PROPAGATION_HOST_TO_CONTAINER])
def test_a_mount_in_a_volume_stays_in_the_container(machine: Machine, propagation: int) -> None:
    volume = Path(tempfile.mkdtemp(dir=machine.folder))
    volume.chmod(0o777)
    mounted = machine.run("cat", "/proc/self/mountinfo").count(str(volume))
    mount = cri.Mount(host_path=str(volume), container_path="/data", propagation=propagation)
    with Pod(machine) as pod:
        pod.sh(pod.sleeper(mounts=[mount]), MOUNT)
        assert machine.run("cat", "/proc/self/mountinfo").count(str(volume)) == mounted
    assert list(volume.iterdir()) == []
