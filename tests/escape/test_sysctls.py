"""Names and values of sysctls that set more than one, or one of the node.

Vectors: CVE-2022-0811 (`kernel.shm_rmid_forced=1+kernel.core_pattern=...`), `..` in names, both separators, new lines.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from escape.pods import Pod
from node import cri_pods
from node.machine import Machine

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

FILES = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hostname",
    "/proc/sys/vm/swappiness",
    "/proc/sys/fs/file-max",
)
TRICKS = {
    "plus": ("kernel.shm_rmid_forced", "1+kernel.core_pattern=|/tmp/x"),
    "comma": ("kernel.shm_rmid_forced", "1,kernel.core_pattern=x"),
    "lines": ("kernel.shm_rmid_forced", "1\nkernel.core_pattern = x"),
    "name_with_value": ("kernel.shm_rmid_forced=1+kernel.core_pattern", "x"),
    "the_nodes": ("kernel.core_pattern", "x"),
    "up_by_slashes": ("net/../kernel/core_pattern", "x"),
    "up_by_dots": ("net....kernel.core_pattern", "x"),
    "mixed": ("net.ipv4/../../kernel/core_pattern", "x"),
    "absolute": ("/proc/sys/kernel/core_pattern", "x"),
    "of_memory": ("vm.swappiness", "77"),
    "of_files": ("fs.file-max", "777"),
    "case": ("KERNEL.core_pattern", "x"),
}


@pytest.mark.parametrize("trick", TRICKS)
def test_nothing_but_the_pods_own_parameters_is_set(machine: Machine, trick: str) -> None:
    name, value = TRICKS[trick]
    before = [Path(each).read_text() for each in FILES]
    config = cri_pods.sandbox_config(machine)
    config.linux.sysctls[name] = value
    pod = Pod(machine, config)
    try:
        pod.__enter__()
    except CRIError:
        pass
    else:
        pod.__exit__()
    assert [Path(each).read_text() for each in FILES] == before


@pytest.mark.parametrize("name", ["net.ipv4.ip_forward", "kernel.msgmax"])
def test_on_the_nodes_network_or_ipc_none_is_set(machine: Machine, name: str) -> None:
    before = machine.run("sysctl", "-n", name)
    config = cri_pods.sandbox_config(machine)
    config.linux.security_context.namespace_options.network = cri.NODE
    config.linux.security_context.namespace_options.ipc = cri.NODE
    config.linux.sysctls[name] = "12345" if "msgmax" in name else "0"
    pod = Pod(machine, config)
    with pytest.raises(CRIError):
        pod.__enter__()
    assert machine.run("sysctl", "-n", name) == before
