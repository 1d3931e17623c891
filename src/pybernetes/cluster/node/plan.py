"""How many nodes `up` gives a cluster, and what they stand on: whether this machine can have any, and their network."""

from __future__ import annotations

import os
from dataclasses import replace
from zlib import crc32

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import DEFAULT_NAME, Layout, Record
from pybernetes.cluster.node import cgroups, containerd, fabric, host
from pybernetes.cluster.node.machine import FOLDERS
from pybernetes.cluster.node.network import NETWORKS, NODES, Network
from pybernetes.cluster.rootless.rights import rights


def obstacle(runtime: str = "containerd") -> str | None:
    """Why this machine cannot have nodes with this runtime, None if it can."""
    if runtime != "containerd":  # `auto` takes our own where containerd cannot be had
        return None
    if not rights().root:
        return "nodes on containerd need root"
    why = containerd.missing()
    return f"{why} (Debian: apt-get install containerd runc containernetworking-plugins nftables)" if why else None


def runtime(layout: Layout, wanted: str) -> str:
    """The container runtime of nodes: as asked for, else the one they had, else containerd if this machine runs it."""
    if wanted != "auto":
        return wanted
    if not rights().root or containerd.missing() is not None:
        return "embedded"
    record = layout.read_record()
    return (record.runtime if record else "") or ("containerd" if containerd.runs() else "embedded")


def check(wanted: int | None, runtime: str = "auto", store: str = "sqlite") -> None:
    """Raises ClusterError if there cannot be so many nodes (None: the default) with this runtime and store."""
    if wanted == 0:
        return
    why = obstacle(runtime)
    if why:
        raise ClusterError(f"--runtime {runtime}: {why}")
    if wanted is not None and wanted > NODES:
        raise ClusterError(f"--nodes {wanted}: at most {NODES} on one machine")
    if store == "etcd" and rights().level == "user-namespaces":  # the API server has a network of its own then
        raise ClusterError("--store etcd: with nodes but without root the API server has no way to etcd; --nodes 0")


def check_family(ip_family: str) -> None:
    """Raises ClusterError if nodes of this machine cannot have addresses of these IP versions."""
    if ip_family != "dual":
        return
    if rights().level == "none":
        raise ClusterError("--ip-family dual: without namespaces all pods have this machine's address")
    if not fabric.has_ipv6():
        raise ClusterError("--ip-family dual: this machine has no IPv6 (net.ipv6.conf.default.disable_ipv6)")


def claim(layout: Layout, *, dual: bool = False) -> Network:
    """Makes the network of a cluster's nodes on the host; the cluster's record remembers which one it has."""
    refuse_host()
    record = layout.read_record() or Record(layout.name)
    network = host.claim(layout.data, record.network, first_choice(layout), list(FOLDERS))
    layout.write_record(replace(record, network=network.index))
    fabric.make(network, dual=dual)
    return network


def refuse_host(mountinfo: str | None = None) -> None:
    """Raises ClusterError on a machine whose mounts or cgroups nodes cannot be made of."""
    if mountinfo is None:
        with open("/proc/self/mountinfo") as file:
            mountinfo = file.read()
    if not any(line.split(" ")[4:5] == ["/"] for line in mountinfo.splitlines()):
        raise ClusterError(
            "nodes need / to be a mount point, and it is none, as in a chroot; "
            "`mount --bind NEWROOT NEWROOT` before the chroot makes it one, --nodes 0 does without"
        )
    found = cgroups.hierarchies(mountinfo)
    if not found:
        raise ClusterError(f"nodes need cgroups, and none are mounted below {cgroups.MOUNT}; --nodes 0 does without")
    if missing := cgroups.missing(found):
        raise ClusterError(
            f"nodes need the cgroup v2 controllers {', '.join(cgroups.NEEDED)}, and this machine does not give "
            f"{', '.join(missing)}: see {cgroups.MOUNT}/cgroup.controllers (real-time processes keep cpu back, "
            f"the kernel's cgroup_disable= any); --nodes 0 does without"
        )


def first_choice(layout: Layout) -> int:
    """The network that a cluster takes if it is free.

    Clusters of other names begin elsewhere, so that two that were made one after the other can run side by side.
    """
    return 0 if layout.name == DEFAULT_NAME else 1 + crc32(os.fsencode(layout.data)) % (NETWORKS - 1)
