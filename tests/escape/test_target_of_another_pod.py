"""An ephemeral container names a container of another pod as the one whose processes it wants to see.

Vector: CRI's `target_id`. A kubelet finds it in the pod; a runtime must not believe that it did.
"""

from __future__ import annotations

import pytest
from escape.pods import Pod, confined
from node.machine import Machine

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError


def targeting(id: str) -> object:
    """An attacker's container that wants the processes of another one."""
    linux = confined("SYS_PTRACE", pid=cri.TARGET)
    linux.security_context.namespace_options.target_id = id
    return linux


def test_only_containers_of_the_same_pod_share_their_processes(machine: Machine) -> None:
    with Pod(machine) as victim, Pod(machine) as pod:
        theirs = victim.start("sh", "-c", "TREASURE=hidden exec sleep 1000")
        with pytest.raises(CRIError):
            pod.sleeper(linux=targeting(theirs))
        own = pod.sleeper()
        debugger = pod.sleeper(linux=targeting(own))
        assert pod.sh(debugger, "ls /proc/1/root/bin/busybox").code == 0
