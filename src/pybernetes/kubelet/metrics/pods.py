"""Metrics of pods on their way through the kubelet: admitted or refused, started, preempted, reported.

Parts call the methods when something happens; pods are counted at each scrape. Names, labels and buckets are
upstream's.
"""

from __future__ import annotations

import logging
from collections import Counter as Count
from collections.abc import Callable, Iterable
from typing import Final

from pybernetes.api.core.v1 import Pod
from pybernetes.client.clock import Clock
from pybernetes.client.keys import key_of, uid_of
from pybernetes.client.metrics import GaugeFunction, Labels, Registry
from pybernetes.component import klog

from ..pod.critical import is_mirror, is_static
from ..pod.workers import PodState, PodWork

log = logging.getLogger(__name__)
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_START: Final = (0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800)
_STATUS: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0)
_LIFECYCLES: Final = {
    PodState.SYNCING: "sync",
    PodState.TERMINATING: "terminating",
    PodState.TERMINATED: "terminated",
    PodState.FINISHED: "terminated",
}


class PodMetrics:
    """Metrics of pods: starts, workers, PLEG, evictions."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        *,
        pods: Callable[[], Iterable[Pod]],
        active: Callable[[], Iterable[Pod]],
        working: Callable[[], Iterable[PodWork]],
    ) -> None:
        self._clock = clock
        self._pods, self._active, self._working = pods, active, working
        self._seen: dict[str, float] = {}
        """When pods that wait for their admission were seen first, by uid."""
        self._pulling: dict[str, float] = {}
        """Seconds spent on images of pods that do not run yet, by uid."""
        self._network_started = False
        long = tuple(map(float, (*_START, 2700, 3600)))
        first = ("first_with_network",)
        histogram, counter = registry.histogram, registry.counter
        self._sli = histogram(
            "kubelet_pod_start_sli_duration_seconds",
            "[ALPHA] Seconds from a pod's creation until all its containers run, without pulls of images.",
            long,
            first,
        )
        self._total = histogram(
            "kubelet_pod_start_total_duration_seconds",
            "[ALPHA] Seconds from a pod's creation until all its containers run, with pulls of images.",
            long,
            first,
        )
        self._start = histogram(
            "kubelet_pod_start_duration_seconds",
            "[ALPHA] Seconds from a pod's creation until it runs.",
            long,
        )
        self._worker_start = histogram(
            "kubelet_pod_worker_start_duration_seconds",
            "[ALPHA] Seconds from a pod's first appearance to the start of its worker.",
            SECONDS,
        )
        self._containers = histogram(
            "kubelet_containers_per_pod_count", "[ALPHA] Containers of each pod.", (1.0, 2.0, 4.0, 8.0, 16.0)
        )
        self.status_sync = histogram(
            "kubelet_pod_status_sync_duration_seconds",
            "[ALPHA] Seconds from a change of a pod's status until the API server has it.",
            _STATUS,
        )
        self.rejections = counter(
            "kubelet_admission_rejections_total", "[ALPHA] Pods that the kubelet refused.", ("reason",)
        )
        self.preemptions = counter(
            "kubelet_preemptions", "[ALPHA] Pods that were ended for a critical one.", ("preemption_signal",)
        )
        self.restarted = counter(
            "kubelet_restarted_pods_total",
            "[ALPHA] Pods that were deleted and made anew with the same UID while they ended.",
            ("static",),
        )
        self.orphaned = counter(
            "kubelet_orphaned_runtime_pods_total", "[ALPHA] Pods of the runtime that no source knows."
        )
        for name, help, labels, read in (
            ("kubelet_active_pods", "Pods that have something of the node.", ("static",), self._count_active),
            ("kubelet_mirror_pods", "Mirror pods of static pods.", (), self._count_mirrors),
            ("kubelet_working_pods", "Pods with a worker.", ("config", "lifecycle", "static"), self._count_working),
            ("kubelet_managed_ephemeral_containers", "Ephemeral containers.", (), self._count_ephemeral),
        ):
            registry.add(GaugeFunction(name, f"[ALPHA] {help}", labels, read))

    # -- what happens

    def seen(self, pod: Pod) -> None:
        """A source shows a pod for the first time."""
        self._seen.setdefault(uid_of(pod), self._clock.monotonic())

    def working(self, pod: Pod) -> None:
        """A pod's worker starts."""
        since = self._seen.pop(uid_of(pod), None)
        if since is not None:
            self._worker_start.observe(self._clock.monotonic() - since)
            self._containers.observe(float(len((pod.spec.containers if pod.spec else None) or ())))

    def pulled(self, uid: str, seconds: float) -> None:
        """An image of a pod was pulled."""
        self._pulling[uid] = self._pulling.get(uid, 0.0) + seconds

    def running(self, pod: Pod, seconds: float) -> None:
        """A pod runs for the first time, so many seconds after its creation."""
        pulling = self._pulling.pop(uid_of(pod), 0.0)
        has_network = not (pod.spec and pod.spec.host_network)
        first = "true" if has_network and not self._network_started else "false"
        self._network_started |= has_network
        self._start.observe(seconds)
        self._total.observe(seconds, first)
        self._sli.observe(max(0.0, seconds - pulling), first)
        klog.info(
            log,
            0,
            "Observed pod startup duration",
            pod=key_of(pod),
            podStartSLOduration=round(max(0.0, seconds - pulling), 3),
            podStartE2EDuration=f"{seconds:.3f}s",
            totalImagesPullingTime=f"{pulling:.3f}s",
            podCreationTimestamp=pod.metadata.creation_timestamp if pod.metadata else None,
        )

    def gone(self, uid: str) -> None:
        """Nothing more will happen to a pod."""
        self._seen.pop(uid, None)
        self._pulling.pop(uid, None)

    # -- what there is

    def _count_active(self) -> list[tuple[Labels, float]]:
        found = Count(is_static(each) for each in self._active())
        return [((_flag(each),), float(found[each])) for each in (False, True)]

    def _count_mirrors(self) -> list[tuple[Labels, float]]:
        return [((), float(sum(map(is_mirror, self._pods()))))]

    def _count_working(self) -> list[tuple[Labels, float]]:
        known = {uid_of(each) for each in self._pods()}
        found = Count(
            (
                "desired" if each.ref.uid in known else "orphan" if each.pod is not None else "runtime_only",
                _LIFECYCLES[each.state],
                "unknown" if each.pod is None else _flag(is_static(each.pod)),
            )
            for each in self._working()
        )
        return [(labels, float(number)) for labels, number in sorted(found.items())]

    def _count_ephemeral(self) -> list[tuple[Labels, float]]:
        specs = (each.spec for each in self._pods())
        return [((), float(sum(len((spec.ephemeral_containers if spec else None) or ()) for spec in specs)))]


def _flag(value: bool) -> str:
    return "true" if value else ""
