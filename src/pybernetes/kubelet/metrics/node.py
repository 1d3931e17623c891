"""Metrics of the kubelet's work on the node: relists, images, cgroups, requests to the API server, the process itself.

Names, labels and buckets are upstream's.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from pybernetes.client import transport
from pybernetes.client.metrics import CounterFunction, GaugeFunction, Labels, Registry

from ..cgroups.hierarchy import Hierarchy
from ..stats.disk import Volume
from ..stats.filesystem import FileSystem
from .pods import SECONDS

MEGABYTE: Final = 1 << 20
GIGABYTE: Final = 1 << 30
_PULL_SECONDS: Final = (1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 180.0, 300.0, 600.0, 900.0, 1200.0, 1800.0, 3600.0)
_CLAIM: Final = ("namespace", "persistentvolumeclaim")
_CSI_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0)
_DRA_SECONDS: Final = tuple(0.1 * 400 ** (power / 14) for power in range(15))
_SIZES: Final = (
    (10 * MEGABYTE, "0-10MB"),
    (100 * MEGABYTE, "10MB-100MB"),
    (500 * MEGABYTE, "100MB-500MB"),
    (GIGABYTE, "500MB-1GB"),
    (5 * GIGABYTE, "1GB-5GB"),
    (10 * GIGABYTE, "5GB-10GB"),
    (20 * GIGABYTE, "10GB-20GB"),
    (30 * GIGABYTE, "20GB-30GB"),
    (40 * GIGABYTE, "30GB-40GB"),
    (60 * GIGABYTE, "40GB-60GB"),
    (100 * GIGABYTE, "60GB-100GB"),
)


class NodeMetrics:
    """Metrics of the kubelet's work on its node."""

    def __init__(self, registry: Registry, hierarchy: Hierarchy) -> None:
        """Times the operations of the hierarchy of cgroups from now on."""
        histogram, counter = registry.histogram, registry.counter
        self._relist = histogram(
            "kubelet_pleg_relist_duration_seconds", "[ALPHA] Seconds for a list of the runtime's pods.", SECONDS
        )
        self._interval = histogram(
            "kubelet_pleg_relist_interval_seconds", "[ALPHA] Seconds between two lists.", SECONDS
        )
        self._last_seen = registry.gauge(
            "kubelet_pleg_last_seen_seconds", "[ALPHA] When the runtime's pods were listed last."
        )
        counter("kubelet_pleg_discard_events", "[ALPHA] Events about pods that were dropped; none ever is.")
        self.event_streams = counter(
            "kubelet_evented_pleg_connection_success_count", "[ALPHA] Streams of events from the runtime."
        )
        self.event_stream_errors = counter(
            "kubelet_evented_pleg_connection_error_count", "[ALPHA] Streams of events that could not be had."
        )
        self._pull = histogram(
            "kubelet_image_pull_duration_seconds",
            "[ALPHA] Seconds for the pull of an image.",
            _PULL_SECONDS,
            ("image_size_in_bytes",),
        )
        self.images_collected = counter(
            "kubelet_image_garbage_collected_total",
            "[ALPHA] Images that were removed because the disk was full (space) or they were old (age).",
            ("reason",),
        )
        self.sandbox_duration = histogram(
            "kubelet_run_podsandbox_duration_seconds",
            "[ALPHA] Seconds for the runtime to make a sandbox.",
            SECONDS,
            ("runtime_handler",),
        )
        self.sandbox_errors = counter(
            "kubelet_run_podsandbox_errors_total", "[ALPHA] Sandboxes that could not be made.", ("runtime_handler",)
        )
        self.cgroups = histogram(
            "kubelet_cgroup_manager_duration_seconds",
            "[ALPHA] Seconds for operations on cgroups.",
            SECONDS,
            ("operation_type",),
        )
        for name, operation in (("create", "create"), ("update", "update"), ("remove", "destroy")):
            setattr(hierarchy, name, self._timed(getattr(hierarchy, name), operation))
        self._registry = registry
        self._dra = histogram(
            "dra_operations_duration_seconds",
            "[ALPHA] Seconds for preparing and unpreparing the claims of a pod.",
            _DRA_SECONDS,
            ("operation_name", "is_error"),
        )
        self.dra_calls = histogram(
            "dra_grpc_operations_duration_seconds",
            "[ALPHA] Seconds for calls to drivers of dynamic resources.",
            _DRA_SECONDS,
            ("driver_name", "method_name", "grpc_status_code"),
        )
        self.csi_calls = histogram(
            "csi_operations_seconds",
            "[ALPHA] Container Storage Interface operation duration with gRPC error code status total",
            _CSI_SECONDS,
            ("driver_name", "method_name", "grpc_status_code", "migrated"),
        )
        registry.add(transport.REQUESTS)
        registry.add(transport.DURATIONS)
        for name, help, read in (
            ("kubelet_cgroup_version", "[ALPHA] The node's version of cgroups.", lambda: _version(hierarchy)),
            ("process_open_fds", "Number of open file descriptors.", lambda: len(os.listdir("/proc/self/fd"))),
            ("process_max_fds", "Maximum number of open file descriptors.", _max_files),
            ("process_virtual_memory_max_bytes", "Maximum amount of virtual memory in bytes.", _max_memory),
            ("process_virtual_memory_bytes", "Virtual memory size in bytes.", _virtual_memory),
        ):
            registry.add(GaugeFunction(name, help, (), _single(read)))
        registry.add(
            CounterFunction("process_network_receive_bytes_total", "Bytes received on the network.", (), _received)
        )
        registry.add(
            CounterFunction("process_network_transmit_bytes_total", "Bytes sent on the network.", (), _transmitted)
        )

    def relisted(self, took: float, interval: float | None) -> None:
        """The runtime's pods were listed, `interval` seconds after the time before."""
        self._relist.observe(took)
        if interval is not None:
            self._interval.observe(interval)
        self._last_seen.set(time.time())

    def pulled(self, seconds: float, size: int) -> None:
        """An image of `size` bytes was pulled."""
        label = next((name for limit, name in _SIZES if size <= limit), "GT100GB")
        self._pull.observe(seconds, label)

    async def timed_claims(self, operation: str, work: Coroutine[Any, Any, None]) -> None:
        """Do something with a pod's claims, and time it."""
        begin, failed = time.monotonic(), True
        try:
            await work
            failed = False
        finally:
            self._dra.observe(time.monotonic() - begin, operation, str(failed).lower())

    def count_claims(self, count: Callable[[], dict[str, int]]) -> None:
        """Show how many claims are in use."""

        def read() -> list[tuple[Labels, float]]:
            return [((driver,), float(number)) for driver, number in sorted(count().items())]

        name, help = "dra_resource_claims_in_use", "[ALPHA] ResourceClaims that are in use on this node."
        self._registry.add(GaugeFunction(name, help, ("driver_name",), read))

    def follow_volumes(self, volumes: Callable[[], Iterable[tuple[tuple[str, str], Volume]]]) -> None:
        """Show how full the volumes behind claims were when they were measured last."""
        text = "[ALPHA] {} of the volume"

        def amounts(read: Callable[[FileSystem], int]) -> Callable[[], list[tuple[Labels, float]]]:
            return lambda: [(key, float(read(each.on))) for key, each in volumes() if each.on is not None]

        for name, help, read in (
            ("capacity_bytes", "Capacity in bytes", lambda on: on.capacity),
            ("available_bytes", "Number of available bytes", lambda on: on.available),
            ("used_bytes", "Number of used bytes", lambda on: on.used),
            ("inodes", "Maximum number of inodes", lambda on: on.inodes),
            ("inodes_free", "Number of free inodes", lambda on: on.inodes_free),
            ("inodes_used", "Number of used inodes", lambda on: on.inodes_used),
        ):
            shown = GaugeFunction(f"kubelet_volume_stats_{name}", text.format(help), _CLAIM, amounts(read))
            self._registry.add(shown)

        def health() -> list[tuple[Labels, float]]:
            return [(key, float(each.abnormal)) for key, each in volumes() if each.abnormal is not None]

        name, help = "health_status_abnormal", "[ALPHA] Abnormal volume health status, 1 or 0."
        self._registry.add(GaugeFunction(f"kubelet_volume_stats_{name}", help, _CLAIM, health))

    def _timed(self, call: Callable[..., Any], operation: str) -> Callable[..., Any]:
        def timed(*args: Any, **more: Any) -> Any:
            begin = time.monotonic()
            try:
                return call(*args, **more)
            finally:
                self.cgroups.observe(time.monotonic() - begin, operation)

        return timed


def _version(hierarchy: Hierarchy) -> int:
    """Of the limits that are set, or, where none are, of the machine."""
    return hierarchy.version or (2 if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else 1)


def _single(read: Callable[[], int]) -> Callable[[], list[tuple[Labels, float]]]:
    return lambda: [((), float(read()))]


def _max_files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _virtual_memory() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _max_memory() -> int:
    return resource.getrlimit(resource.RLIMIT_AS)[0]  # -1: as much as there is


def _received() -> list[tuple[Labels, float]]:
    """Of the node's network namespace, as Prometheus's own process collector counts."""
    return _network(0)


def _transmitted() -> list[tuple[Labels, float]]:
    return _network(8)


def _network(column: int) -> list[tuple[Labels, float]]:
    with open("/proc/self/net/dev") as file:
        return [((), float(sum(int(line.split(":")[1].split()[column]) for line in file if ":" in line)))]
