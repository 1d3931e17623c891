"""The document of /stats/summary (stats/v1alpha1) from a sample of the node. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pybernetes.api.core.v1 import Pod
from pybernetes.api.times import rfc3339

from .disk import EMPTY_DIR, ImageStore, PodDisk, Volume
from .filesystem import FileSystem, Size
from .network import Interface
from .sampler import ContainerSample, NodeSample, PodSample, Sample
from .usage import Pressure

Json = dict[str, Any]


@dataclass(slots=True)
class Facts:
    """The figures of a summary that are not in the sample; empty where only CPU and memory were asked for."""

    node: str
    started_at: float
    memory_capacity: int
    nodefs: FileSystem | None = None
    images: ImageStore | None = None
    layers: Mapping[str, Size] = field(default_factory=dict)
    disks: Mapping[str, PodDisk] = field(default_factory=dict)
    node_network: list[Interface] = field(default_factory=list)
    default_interface: str = ""
    pod_networks: Mapping[str, list[Interface]] = field(default_factory=dict)
    pods: Mapping[str, Pod] = field(default_factory=dict)
    processes: tuple[int, int] | None = None
    """How many there may be, and how many there are."""


def summary(sample: NodeSample, facts: Facts, *, only_cpu_and_memory: bool = False) -> Json:
    """The whole document."""
    return {
        "node": _node(sample, facts, only_cpu_and_memory),
        "pods": [_pod(each, facts, only_cpu_and_memory) for each in sample.pods],
    }


def _node(sample: NodeSample, facts: Facts, short: bool) -> Json:
    node: Json = {"nodeName": facts.node}
    if sample.kubepods is not None:
        pods = {"name": "pods", "startTime": rfc3339(facts.started_at), **_basics(sample.kubepods)}
        node["systemContainers"] = [pods]
    node["startTime"] = rfc3339(facts.started_at)
    if sample.root is not None:
        node |= _basics(sample.root, facts.memory_capacity)
    if short:
        return node
    if facts.node_network:
        node["network"] = _network(sample.time, facts.node_network, facts.default_interface)
    if facts.nodefs is not None:
        node["fs"] = _filesystem(sample.time, facts.nodefs, facts.nodefs.used, facts.nodefs.inodes_used)
    if facts.images is not None and facts.images.on is not None:
        # One file system for both: writable layers lie beside the images.
        images = _filesystem(sample.time, facts.images.on, facts.images.used, facts.images.inodes_used)
        layers = sum(facts.layers.values(), Size())
        containers = _filesystem(sample.time, facts.images.on, layers.bytes, layers.inodes)
        node["runtime"] = {"imageFs": images, "containerFs": containers}
    if facts.processes is not None:
        node["rlimit"] = {"time": rfc3339(sample.time), "maxpid": facts.processes[0], "curproc": facts.processes[1]}
    return node


def _pod(pod: PodSample, facts: Facts, short: bool) -> Json:
    ref = pod.pod.ref
    entry: Json = {
        "podRef": {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid},
        "startTime": rfc3339(pod.started_at),
        "containers": [_container(each, ref.uid, facts, short) for each in pod.containers],
    }
    if pod.sample is not None:
        entry |= _basics(pod.sample)
    if short:
        return entry
    time = pod.sample.time if pod.sample else pod.started_at
    if interfaces := facts.pod_networks.get(ref.uid):
        entry["network"] = _network(time, interfaces, "eth0")
    disk = facts.disks.get(ref.uid) or PodDisk()
    if disk.volumes:
        entry["volume"] = [_volume(time, each, facts.pods.get(ref.uid)) for each in disk.volumes]
    if facts.nodefs is not None:
        used = ephemeral(pod, disk, facts.layers)
        entry["ephemeral-storage"] = _filesystem(time, facts.nodefs, used.bytes, used.inodes)
    if pod.sample is not None and pod.sample.usage.processes is not None:
        entry["process_stats"] = {"process_count": pod.sample.usage.processes}
    return entry


def ephemeral(pod: PodSample, disk: PodDisk, layers: Mapping[str, Size]) -> Size:
    """The usage that counts as ephemeral storage: layers, logs, emptyDirs on disk, the kubelet's own files."""
    total = sum(disk.logs.values(), disk.other)
    total += sum((layers.get(each.id, Size()) for each in pod.pod.containers), Size())
    return total + sum((each.size for each in disk.volumes if each.plugin == EMPTY_DIR and not each.in_memory), Size())


def _container(each: ContainerSample, uid: str, facts: Facts, short: bool) -> Json:
    container = each.container
    entry: Json = {"name": container.name, "startTime": rfc3339(container.started_at), **_basics(each.sample)}
    if short:
        return entry
    time = each.sample.time
    layer = facts.layers.get(container.id)
    if layer is not None and facts.images is not None and facts.images.on is not None:
        entry["rootfs"] = _filesystem(time, facts.images.on, layer.bytes, layer.inodes)
    logs = (facts.disks.get(uid) or PodDisk()).logs.get(container.name)
    if logs is not None and facts.nodefs is not None:
        entry["logs"] = _filesystem(time, facts.nodefs, logs.bytes, logs.inodes)
    return entry


def _basics(sample: Sample, capacity: int | None = None) -> Json:
    """CPU, memory, IO (where the kernel tells it) and swap."""
    usage, time = sample.usage, rfc3339(sample.time)
    cpu: Json = {"time": time}
    if sample.rate is not None:
        cpu["usageNanoCores"] = sample.rate
    cpu["usageCoreNanoSeconds"] = usage.cpu
    memory: Json = {"time": time}
    limit = capacity if capacity is not None else usage.memory_limit
    if limit is not None:
        memory["availableBytes"] = max(0, limit - usage.working_set)
    memory |= {
        "usageBytes": usage.memory,
        "workingSetBytes": usage.working_set,
        "rssBytes": usage.rss,
        "pageFaults": usage.page_faults,
        "majorPageFaults": usage.major_page_faults,
    }
    swap: Json = {"time": time}
    if usage.swap_limit is not None:
        swap["swapAvailableBytes"] = max(0, usage.swap_limit - usage.swap)
    swap["swapUsageBytes"] = usage.swap
    entry: Json = {"cpu": cpu, "memory": memory}
    for name, (some, full) in (usage.pressure or {}).items():
        entry.setdefault(name, {"time": time})["psi"] = {"full": _psi(full), "some": _psi(some)}
    entry["swap"] = swap
    return entry


def _psi(pressure: Pressure) -> Json:
    return {
        "total": pressure.total,
        "avg10": pressure.avg10,
        "avg60": pressure.avg60,
        "avg300": pressure.avg300,
    }


def _network(time: float, interfaces: list[Interface], default: str) -> Json:
    entries = [
        {
            "name": each.name,
            "rxBytes": each.rx_bytes,
            "rxErrors": each.rx_errors,
            "txBytes": each.tx_bytes,
            "txErrors": each.tx_errors,
        }
        for each in interfaces
    ]
    main = next((each for each in entries if each["name"] == default), {"name": ""})
    return {"time": rfc3339(time), **main, "interfaces": entries}


def _filesystem(time: float, on: FileSystem, used: int, inodes_used: int) -> Json:
    return {
        "time": rfc3339(time),
        "availableBytes": on.available,
        "capacityBytes": on.capacity,
        "usedBytes": used,
        "inodesFree": on.inodes_free,
        "inodes": on.inodes,
        "inodesUsed": inodes_used,
    }


def _volume(time: float, volume: Volume, pod: Pod | None) -> Json:
    on = volume.on or FileSystem(0, 0, 0, 0, 0)
    entry = {**_filesystem(time, on, volume.size.bytes, volume.size.inodes), "name": volume.name}
    for each in (pod.spec.volumes if pod and pod.spec else None) or ():
        if each.name == volume.name and each.persistent_volume_claim is not None:
            assert pod is not None
            assert pod.metadata is not None
            claim = each.persistent_volume_claim.claim_name
            entry["pvcRef"] = {"name": claim, "namespace": pod.metadata.namespace}
        elif each.name == volume.name and each.ephemeral is not None and pod is not None and pod.metadata is not None:
            entry["pvcRef"] = {"name": f"{pod.metadata.name}-{each.name}", "namespace": pod.metadata.namespace}
    if volume.abnormal is not None:
        entry["volumeHealthStats"] = {"abnormal": volume.abnormal}
    return entry
