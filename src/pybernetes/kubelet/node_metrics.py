"""Metrics of the kubelet's work on the node: relists, images, cgroups, requests to the API server, the process itself.

Names, labels and buckets are upstream's.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from typing import Any, Final

from pybernetes.client import transport
from pybernetes.client.metrics import CounterFunction, GaugeFunction, Labels, Registry

from .cgroups.hierarchy import Hierarchy
from .pod_metrics import SECONDS

MEGABYTE: Final = 1 << 20
GIGABYTE: Final = 1 << 30
_PULL_SECONDS: Final = (1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 180.0, 300.0, 600.0, 900.0, 1200.0, 1800.0, 3600.0)
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
    """What the kubelet does on its node."""

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
        registry.add(transport.REQUESTS)
        registry.add(transport.DURATIONS)
        for name, help, read in (
            ("kubelet_cgroup_version", "[ALPHA] The node's version of cgroups.", lambda: _version(hierarchy)),
            ("process_open_fds", "Number of open file descriptors.", lambda: len(os.listdir("/proc/self/fd"))),
            ("process_max_fds", "Maximum number of open file descriptors.", _max_files),
            ("process_virtual_memory_bytes", "Virtual memory size in bytes.", _virtual_memory),
        ):
            registry.add(GaugeFunction(name, help, (), _single(read)))
        registry.add(
            CounterFunction("process_network_receive_bytes_total", "Bytes received on the network.", (), _received)
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


def _received() -> list[tuple[Labels, float]]:
    """Of the node's network namespace, as Prometheus's own process collector counts."""
    with open("/proc/self/net/dev") as file:
        return [((), float(sum(int(line.split(":")[1].split()[0]) for line in file if ":" in line)))]
