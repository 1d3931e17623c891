"""/metrics/cadvisor: what dashboards for containers read, with cAdvisor's names. Pure.

Of cAdvisor's many metrics these are the ones about CPU, memory, processes, limits, disk IO, network, and the file
system of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .cgroup_details import Details, DeviceIO
from .exposition import Labels, Row, family, text
from .filesystem import FileSystem
from .network import Interface
from .sampler import NodeSample, Sample
from .usage import Usage

_COUNTERS: dict[str, tuple[str, Callable[[Usage], float]]] = {
    "container_cpu_usage_seconds_total": ("Cumulative cpu time consumed in seconds.", lambda each: each.cpu / 1e9),
    "container_cpu_user_seconds_total": (
        "Cumulative user cpu time consumed in seconds.",
        lambda each: each.cpu_user / 1e9,
    ),
    "container_cpu_system_seconds_total": (
        "Cumulative system cpu time consumed in seconds.",
        lambda each: each.cpu_system / 1e9,
    ),
    "container_cpu_cfs_periods_total": ("Number of elapsed enforcement period intervals.", lambda each: each.periods),
    "container_cpu_cfs_throttled_periods_total": (
        "Number of throttled period intervals.",
        lambda each: each.throttled_periods,
    ),
    "container_cpu_cfs_throttled_seconds_total": (
        "Total time duration the container has been throttled.",
        lambda each: each.throttled / 1e9,
    ),
}
_GAUGES: dict[str, tuple[str, Callable[[Usage], float]]] = {
    "container_memory_usage_bytes": (
        "Current memory usage in bytes, including all memory regardless of when it was accessed",
        lambda each: each.memory,
    ),
    "container_memory_working_set_bytes": ("Current working set in bytes.", lambda each: each.working_set),
    "container_memory_rss": ("Size of RSS in bytes.", lambda each: each.rss),
    "container_memory_cache": ("Number of bytes of page cache memory.", lambda each: each.cache),
    "container_memory_mapped_file": ("Size of memory mapped files in bytes.", lambda each: each.mapped_file),
    "container_memory_swap": ("Container swap usage in bytes.", lambda each: each.swap),
    "container_processes": ("Number of processes running inside the container.", lambda each: each.processes or 0),
    "container_spec_memory_limit_bytes": ("Memory limit for the container.", lambda each: each.memory_limit or 0),
}
_NETWORK: dict[str, tuple[str, Callable[[Interface], float]]] = {
    "container_network_receive_bytes_total": ("Cumulative count of bytes received", lambda each: each.rx_bytes),
    "container_network_receive_packets_total": ("Cumulative count of packets received", lambda each: each.rx_packets),
    "container_network_receive_errors_total": (
        "Cumulative count of errors encountered while receiving",
        lambda each: each.rx_errors,
    ),
    "container_network_receive_packets_dropped_total": (
        "Cumulative count of packets dropped while receiving",
        lambda each: each.rx_dropped,
    ),
    "container_network_transmit_bytes_total": ("Cumulative count of bytes transmitted", lambda each: each.tx_bytes),
    "container_network_transmit_packets_total": (
        "Cumulative count of packets transmitted",
        lambda each: each.tx_packets,
    ),
    "container_network_transmit_errors_total": (
        "Cumulative count of errors encountered while transmitting",
        lambda each: each.tx_errors,
    ),
    "container_network_transmit_packets_dropped_total": (
        "Cumulative count of packets dropped while transmitting",
        lambda each: each.tx_dropped,
    ),
}


_IO: dict[str, tuple[str, Callable[[DeviceIO], float]]] = {
    "container_fs_reads_bytes_total": ("Bytes read from a block device.", lambda each: each.read_bytes),
    "container_fs_writes_bytes_total": ("Bytes written to a block device.", lambda each: each.write_bytes),
    "container_fs_reads_total": ("Reads from a block device.", lambda each: each.reads),
    "container_fs_writes_total": ("Writes to a block device.", lambda each: each.writes),
}
_DETAILS: dict[str, tuple[str, str, Callable[[Details], int | None]]] = {
    "container_spec_cpu_shares": ("gauge", "CPU shares of the container.", lambda each: each.cpu_shares),
    "container_spec_cpu_period": ("gauge", "CPU period of the container.", lambda each: each.cpu_period),
    "container_spec_cpu_quota": (
        "gauge",
        "CPU quota of the container.",
        lambda each: each.cpu_quota if (each.cpu_quota or 0) > 0 else None,
    ),
    "container_threads": ("gauge", "Threads of the container.", lambda each: each.threads),
    "container_oom_events_total": ("counter", "Processes killed for want of memory.", lambda each: each.ooms),
}
_FILE_SYSTEM: dict[str, tuple[str, Callable[[FileSystem], float]]] = {
    "container_fs_limit_bytes": ("Bytes of the file system.", lambda each: each.capacity),
    "container_fs_usage_bytes": ("Bytes used of the file system.", lambda each: each.used),
    "container_fs_inodes_total": ("Inodes of the file system.", lambda each: each.inodes),
    "container_fs_inodes_free": ("Free inodes of the file system.", lambda each: each.inodes_free),
}


def cadvisor_metrics(
    sample: NodeSample,
    networks: Mapping[str, list[Interface]],
    *,
    cores: int,
    memory: int,
    details: Callable[[str], Details] = lambda cgroup: Details(),
    nodefs: FileSystem | None = None,
) -> bytes:
    """The text; `networks` by the pod's uid, `details` of a cgroup by its name."""
    entries: list[tuple[Labels, Sample]] = []
    starts: list[Row] = []
    for name, root in (("/", sample.root), ("/kubepods", sample.kubepods)):
        if root is not None:
            entries.append((_labels(name), root))
    for pod in sample.pods:
        ref = pod.pod.ref
        if pod.sample is not None:
            entries.append((_labels(pod.cgroup, ref.namespace, ref.name), pod.sample))
        for each in pod.containers:
            container = each.container
            labels = _labels(each.cgroup, ref.namespace, ref.name, container.name, container.image, container.id)
            entries.append((labels, each.sample))
            starts.append((labels, container.started_at, each.sample.time))
    families = []
    for kind, table in (("counter", _COUNTERS), ("gauge", _GAUGES)):
        for name, (help, value) in table.items():
            extra = {"cpu": "total"} if name == "container_cpu_usage_seconds_total" else {}
            rows: list[Row] = [({**labels, **extra}, value(each.usage), each.time) for labels, each in entries]
            families.append(family(name, help, kind, rows))
    families += _detailed([(labels, details(labels["id"]), each.time) for labels, each in entries])
    if nodefs is not None:
        for name, (help, amount) in _FILE_SYSTEM.items():
            families.append(family(name, help, "gauge", [({**_labels("/"), "device": "/"}, amount(nodefs), None)]))
    families.append(family("container_memory_failures_total", "Page faults.", "counter", _faults(entries)))
    seen: list[Row] = [(labels, each.time, each.time) for labels, each in entries]
    families.append(family("container_last_seen", "Last time a container was seen by the exporter", "gauge", seen))
    families.append(
        family(
            "container_start_time_seconds", "Start time of the container since unix epoch in seconds.", "gauge", starts
        )
    )
    for name, (help, count) in _NETWORK.items():
        rows = []
        for pod in sample.pods:
            labels = _labels(pod.cgroup, pod.pod.ref.namespace, pod.pod.ref.name)
            time = pod.sample.time if pod.sample else sample.time
            for interface in networks.get(pod.pod.uid, ()):
                rows.append(({**labels, "interface": interface.name}, count(interface), time))
        families.append(family(name, help, "counter", rows))
    families.append(family("machine_cpu_cores", "Number of logical CPU cores.", "gauge", [({}, float(cores), None)]))
    families.append(
        family("machine_memory_bytes", "Amount of memory installed on the machine.", "gauge", [({}, memory, None)])
    )
    return text(*sorted(families))


def _detailed(entries: list[tuple[Labels, Details, float]]) -> list[list[str]]:
    families = []
    for name, (kind, help, value) in _DETAILS.items():
        rows: list[Row] = [
            (labels, float(found), time) for labels, each, time in entries if (found := value(each)) is not None
        ]
        families.append(family(name, help, kind, rows))
    for name, (help, count) in _IO.items():
        rows = [
            ({**labels, "device": device}, float(count(io)), time)
            for labels, each, time in entries
            for device, io in each.io.items()
        ]
        families.append(family(name, help, "counter", rows))
    return families


def _faults(entries: list[tuple[Labels, Sample]]) -> list[Row]:
    return [
        ({**labels, "failure_type": kind, "scope": "hierarchy"}, float(count), each.time)
        for labels, each in entries
        for kind, count in (("pgfault", each.usage.page_faults), ("pgmajfault", each.usage.major_page_faults))
    ]


def _labels(
    id: str, namespace: str = "", pod: str = "", container: str = "", image: str = "", name: str = ""
) -> Labels:
    return {"id": id, "namespace": namespace, "pod": pod, "container": container, "image": image, "name": name}
