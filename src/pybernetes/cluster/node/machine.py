"""The file `machine.json`, written by `up` and read by the node's init process: its namespaces and programs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

# Where a node has a folder of its own, and what it is called in the node's folder.
FOLDERS = {
    "/etc/cni": "etc-cni",
    "/etc/kubernetes": "etc-kubernetes",
    "/opt/cni": "opt-cni",
    "/var/lib/cni": "lib-cni",
    "/var/lib/containerd": "lib-containerd",
    "/var/lib/kubelet": "lib-kubelet",
    "/var/log/containers": "log-containers",
    "/var/log/pods": "log-pods",
}
# Files a machine has that say which one it is; those the host does not have, a node does not need either.
FILES = {
    "/etc/hostname": "hostname",
    "/etc/hosts": "hosts",
    "/etc/machine-id": "machine-id",
    "/etc/resolv.conf": "resolv.conf",
}
RUN = "/run/pybernetes"
PARTITIONED = "partitioned"
"""A file in the node's folder: its port of the switch is off."""
KERNEL_BOOT_ID = "/proc/sys/kernel/random/boot_id"
BOOT_ID = f"{RUN}/boot-id"
"""Another one after each start, as on any machine: it is how others notice that a node lost its containers."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program that the node keeps running."""

    name: str
    argv: list[str]
    log: str


@dataclass(frozen=True, slots=True)
class Machine:
    """One node."""

    name: str
    folder: str
    cgroup: str
    bridge: str
    port: str
    address: str
    gateway: str
    pods: str
    keep: list[str]
    images: str
    programs: list[Program]
    socket: str = "/run/containerd/containerd.sock"
    """In the node: where its container runtime answers."""
    isolation: str = "root"
    """`rootless.rights.Level`: without root a node has no cgroups and none of FOLDERS, its programs know others."""
    run: str = RUN
    """In the node: the pid files of its programs."""
    address6: str = ""
    """Its IPv6 address and the switch's, if the cluster has both IP versions."""
    gateway6: str = ""
    proxy: str = ""
    """By which its programs reach other networks, if that is the only way."""

    def write(self) -> Path:
        """Puts it into the node's folder."""
        path = Path(self.folder, "machine.json")
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")
        return path

    @classmethod
    def read(cls, path: str) -> Machine:
        """Read the file that `write` wrote."""
        with open(path) as file:
            content = json.load(file)
        programs = [Program(**each) for each in content.pop("programs")]
        known = {each.name for each in fields(cls)}  # one that an older version wrote may have more
        return cls(programs=programs, **{name: value for name, value in content.items() if name in known})
