"""Metrics of the kubelet's managers: CPUs, devices, images, resizes, volumes, hooks, certificates, the node's start.

The managers count; here the counts get upstream's names and labels, and are read at each scrape.
"""

from __future__ import annotations

import time
from collections import Counter as Count
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from pybernetes.api.core.v1 import Node
from pybernetes.client.metrics import CounterFunction, GaugeFunction, Labels, Registry

from .pods import SECONDS

if TYPE_CHECKING:
    from ..kubelet import Kubelet

_DELEGATED: Final = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
_ADMISSION_MS: Final = tuple(0.05 * 2**power for power in range(15))
_STORAGE: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0)
_STATS_AGE: Final = SECONDS
_ZERO: Final = (
    "memory_manager_pinning_requests_total",
    "memory_manager_pinning_errors_total",
    "started_user_namespaced_pods_total",
    "started_user_namespaced_pods_errors_total",
    "topology_manager_admission_errors_total",
)
"""Of parts that this kubelet does not have, or that refuse nothing with the policy `none`."""
Row = tuple[Labels, float]


class ManagerMetrics:
    """Reads the managers of a kubelet at each scrape, and observes durations that they report."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._booted, self._began = _boot_time(), time.time()
        self._ready_at = 0.0
        self._registered_at = 0.0
        self._registering_at = 0.0
        histogram = registry.histogram
        self._admission = histogram(
            "kubelet_topology_manager_admission_duration_ms",
            "[ALPHA] Milliseconds for giving a pod its devices.",
            _ADMISSION_MS,
        )
        self._admissions = registry.counter(
            "kubelet_topology_manager_admission_requests_total", "[ALPHA] Pods that were given resources of the node."
        )
        self._devices = histogram(
            "kubelet_device_plugin_alloc_duration_seconds",
            "[ALPHA] Seconds for an Allocate of a device plugin.",
            SECONDS,
            ("resource_name",),
        )
        self._registrations = registry.counter(
            "kubelet_device_plugin_registration_total", "[ALPHA] Registrations of device plugins.", ("resource_name",)
        )
        self._stats_age = histogram(
            "kubelet_eviction_stats_age_seconds",
            "[ALPHA] Seconds between the measurement and the eviction for it.",
            _STATS_AGE,
            ("eviction_signal",),
        )
        self._storage = histogram(
            "storage_operation_duration_seconds",
            "[ALPHA] Seconds for operations on volumes.",
            _STORAGE,
            ("migrated", "operation_name", "status", "volume_plugin"),
        )
        for name in _ZERO:
            registry.counter(f"kubelet_{name}", "[ALPHA] Always 0: this kubelet has no such part.")
        for name, words in (("authn", "authentications"), ("authz", "authorizations")):
            registry.counter(f"apiserver_delegated_{name}_request_total", f"[ALPHA] Requests for {words}.", ("code",))
            histogram(
                f"apiserver_delegated_{name}_request_duration_seconds",
                f"[ALPHA] Seconds for requests for {words}.",
                _DELEGATED,
                ("code",),
            )
        self._token_cache = registry.counter(
            "authentication_token_cache_request_total", "[ALPHA] Looks for a token among those known.", ("status",)
        )

    # -- observations

    def admitted(self, seconds: float) -> None:
        """A pod was given devices, or refused them."""
        self._admissions.inc()
        self._admission.observe(seconds * 1000)

    def allocated(self, resource: str, seconds: float) -> None:
        """A device plugin has answered Allocate."""
        self._devices.observe(seconds, resource)

    def registered_plugin(self, resource: str) -> None:
        """A device plugin registered."""
        self._registrations.inc(resource)

    def evicted(self, signal: str, age: float) -> None:
        """A pod was evicted for figures of that age."""
        self._stats_age.observe(age, signal)

    def volume_operation(self, plugin: str, operation: str, seconds: float, ok: bool) -> None:
        """A volume was mounted or unmounted, or could not be."""
        self._storage.observe(seconds, "false", operation, "success" if ok else "fail-unknown", plugin)

    def delegated(self, what: str, code: str, seconds: float) -> None:
        """A TokenReview (authn) or SubjectAccessReview (authz) was sent to the API server."""
        self._registry.counter(f"apiserver_delegated_{what}_request_total", "").inc(code)
        self._registry.histogram(f"apiserver_delegated_{what}_request_duration_seconds", "").observe(seconds, code)

    def looked_up(self, known: bool) -> None:
        """A token was looked for among those known."""
        self._token_cache.inc("hit" if known else "miss")

    def registering(self) -> None:
        """The registration of the node begins."""
        self._registering_at = self._registering_at or time.time()

    def node_seen(self, node: Node) -> None:
        """The API server has the node."""
        self._registered_at = self._registered_at or time.time()
        ready = (each for each in (node.status.conditions if node.status else None) or () if each.type == "Ready")
        if not self._ready_at and any(each.status == "True" for each in ready):
            self._ready_at = time.time()

    def certificate(self, kind: str, expires: Callable[[], float | None], failures: Callable[[], int]) -> None:
        """A certificate that is renewed (client or server): when it ends, and how often its renewal failed."""

        def left() -> list[Row]:
            end = expires()
            return [((), float("inf") if end is None else end - time.time())]

        self._gauge(
            f"kubelet_certificate_manager_{kind}_ttl_seconds", f"Seconds until the {kind} certificate ends.", left
        )
        name = "certificate_manager_client_expiration" if kind == "client" else "server_expiration"
        self._counter(f"kubelet_{name}_renew_errors", f"Renewals of the {kind} certificate that failed.", failures)

    # -- what is read

    def read(self, kubelet: Kubelet) -> None:
        """Show what a kubelet's managers count."""
        cpus, images, hooks = kubelet.cpus, kubelet.images, kubelet.hooks
        self._counter(
            "kubelet_cpu_manager_pinning_requests_total",
            "Containers that asked for CPUs of their own.",
            lambda: cpus.pinning_requests,
        )
        self._counter(
            "kubelet_cpu_manager_pinning_errors_total", "Containers that did not get them.", lambda: cpus.pinning_errors
        )
        self._single(
            "kubelet_cpu_manager_shared_pool_size_millicores",
            "Size of the CPUs that are shared.",
            lambda: 1000 * cpus.shared_count(),
        )
        self._single(
            "kubelet_cpu_manager_exclusive_cpu_allocation_count",
            "CPUs that containers have alone.",
            cpus.exclusive_count,
        )
        self._table(
            "kubelet_cpu_manager_allocation_per_numa",
            "CPUs that containers have alone, by NUMA node.",
            ("numa_node",),
            lambda: {(str(node),): count for node, count in cpus.exclusive_by_node().items()},
        )
        self._table(
            "kubelet_image_manager_ensure_image_requests_total",
            "Images that containers wanted.",
            ("present_locally", "pull_policy", "pull_required"),
            lambda: images.requests,
            kind=CounterFunction,
        )
        self._table(
            "kubelet_imagemanager_image_mustpull_checks_total",
            "Checks whether a pod may use an image that is there.",
            ("result",),
            lambda: {(result,): count for result, count in kubelet.pulled.checks.items()},
            kind=CounterFunction,
        )
        self._single("kubelet_imagemanager_ondisk_pulledrecords", "Records of pulled images.", kubelet.pulled.count)
        self._single("kubelet_imagemanager_ondisk_pullintents", "Records of pulls under way.", kubelet.pulled.intents)
        volumes = kubelet.runtime_manager.image_volumes
        for name in ("requested_total", "mounted_succeed_total", "mounted_errors_total"):
            self._counter(
                f"kubelet_image_volume_{name}", "Volumes that are images.", partial(volumes.__getitem__, name)
            )
        self._counter(
            "kubelet_sleep_action_terminated_early_total",
            "Sleeps of hooks that were broken off.",
            lambda: hooks.broken_sleeps,
        )
        self._counter(
            "kubelet_lifecycle_handler_http_fallbacks_total",
            "Hooks that were asked by HTTP after HTTPS.",
            lambda: hooks.fallbacks,
        )
        conditions = kubelet.allocation.resize_conditions
        self._table(
            "kubelet_pod_pending_resizes",
            "Resizes that wait.",
            ("reason",),
            lambda: {(reason.lower(),): count for reason, count in conditions.pending().items()},
        )
        self._single("kubelet_pod_in_progress_resizes", "Resizes under way.", conditions.in_progress)
        self._table(
            "kubelet_pod_infeasible_resizes_total",
            "Resizes that can never be.",
            ("reason_detail",),
            lambda: {(reason,): count for reason, count in kubelet.allocation.infeasible.items()},
            kind=CounterFunction,
        )
        self._single(
            "kubelet_orphan_pod_cleaned_volumes",
            "Pods' volumes that the last look removed.",
            lambda: kubelet.housekeeping.cleaned,
        )
        self._single(
            "kubelet_orphan_pod_cleaned_volumes_errors",
            "Those that it could not remove.",
            lambda: kubelet.housekeeping.not_cleaned,
        )
        self._table(
            "volume_manager_total_volumes",
            "Volumes of pods, wanted and there.",
            ("plugin_name", "state"),
            lambda: _volumes(kubelet),
        )
        shutdown = kubelet.shutdown
        self._single(
            "kubelet_graceful_shutdown_start_time_seconds", "When the last shutdown began.", lambda: shutdown.last[0]
        )
        self._single("kubelet_graceful_shutdown_end_time_seconds", "When it was done.", lambda: shutdown.last[1])
        self._starts()

    def _starts(self) -> None:
        for part, words in (
            ("pre_kubelet_", "from boot to the kubelet's start"),
            ("pre_registration_", "from the kubelet's start to the registration"),
            ("registration_", "for the registration"),
            ("post_registration_", "from the registration to Ready"),
            ("", "from boot to Ready"),
        ):
            name = f"kubelet_node_startup_{part}duration_seconds"
            self._single(name, f"Seconds {words}; 0 until then.", partial(self._startup, part))

    def _startup(self, part: str) -> float:
        begin, end = {
            "pre_kubelet_": (self._booted, self._began),
            "pre_registration_": (self._began, self._registering_at),
            "registration_": (self._registering_at, self._registered_at),
            "post_registration_": (self._registered_at, self._ready_at),
            "": (self._booted, self._ready_at),
        }[part]
        return max(0.0, end - begin) if begin and end else 0.0

    def _gauge(self, name: str, help: str, read: Callable[[], Iterable[Row]]) -> None:
        self._registry.add(GaugeFunction(name, f"[ALPHA] {help}", (), read))

    def _single(self, name: str, help: str, read: Callable[[], float]) -> None:
        self._gauge(name, help, lambda: [((), float(read()))])

    def _counter(self, name: str, help: str, read: Callable[[], int]) -> None:
        self._registry.add(CounterFunction(name, f"[ALPHA] {help}", (), lambda: [((), float(read()))]))

    def _table(
        self,
        name: str,
        help: str,
        labels: Labels,
        read: Callable[[], Mapping[Labels, int]],
        kind: type[GaugeFunction] = GaugeFunction,
    ) -> None:
        def rows() -> list[Row]:
            return [(values, float(count)) for values, count in sorted(read().items())]

        self._registry.add(kind(name, f"[ALPHA] {help}", labels, rows))


def _volumes(kubelet: Kubelet) -> dict[Labels, int]:
    """Volumes by plugin, wanted (desired_state_of_world) and there (actual_state_of_world)."""
    found: Count[Labels] = Count()
    for pod in kubelet.intake.active():
        for plugin, there in kubelet.volumes.plugins_of(pod):
            found[plugin, "desired_state_of_world"] += 1
            found[plugin, "actual_state_of_world"] += there
    return dict(found)


def _boot_time() -> float:
    with open("/proc/stat") as file:
        return float(next((line.split()[1] for line in file if line.startswith("btime ")), 0))
