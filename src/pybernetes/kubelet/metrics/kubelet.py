"""The kubelet's own metrics (/metrics), with upstream's names; the figures of pods are in `stats`."""

from __future__ import annotations

import os
import time
from collections import Counter as Count
from collections.abc import Callable, Iterable
from typing import Any, Final

from pybernetes.api.core.v1 import Pod, PodStatus
from pybernetes.client.metrics import CounterFunction, GaugeFunction, Labels, Registry
from pybernetes.component import tasks
from pybernetes.component.watchdog import LoopWatchdog
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime
from pybernetes.version import GIT_VERSION

from ..runtime import labels
from ..runtime.types import ObservedPod
from .node import NodeMetrics

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # Prometheus's own
_OPERATION_SECONDS: Final = tuple(0.005 * 2.5**power for power in range(14))
_OPERATIONS: Final = {
    "RunPodSandbox": "run_podsandbox",
    "StopPodSandbox": "stop_podsandbox",
    "RemovePodSandbox": "remove_podsandbox",
    "PodSandboxStatus": "podsandbox_status",
    "ListPodSandbox": "list_podsandbox",
    "UpdateContainerResources": "update_container",
}


class KubeletMetrics:
    """The kubelet's own metrics. Parts call the methods when something happens."""

    def __init__(
        self,
        node: str,
        *,
        observed: Callable[[], Iterable[ObservedPod]],
        pods: Callable[[], Iterable[Pod]],
        registry: Registry | None = None,
    ) -> None:
        self.registry = registry = registry or Registry()
        self._observed, self._pods = observed, pods
        registry.gauge("kubelet_node_name", "[ALPHA] The node's name. The count is always 1.", ("node",)).set(1.0, node)
        info = registry.gauge(
            "kubernetes_build_info",
            "[ALPHA] A metric with a constant '1' value labeled by major, minor, git version.",
            ("git_version", "major", "minor"),
        )
        major, minor, *_ = GIT_VERSION.removeprefix("v").split(".")
        info.set(1.0, GIT_VERSION, major, minor)
        self._add("kubelet_running_pods", "Number of pods that have a running pod sandbox", (), self._running_pods)
        self._add(
            "kubelet_running_containers",
            "Number of containers currently running",
            ("container_state",),
            self._containers,
        )
        self._add(
            "kubelet_desired_pods",
            "The number of pods the kubelet is being instructed to run. static is true if the pod is not from the "
            "apiserver.",
            ("static",),
            self._desired_pods,
        )
        self._add("process_resident_memory_bytes", "Resident memory size in bytes.", (), _resident, level="")
        self._add("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", (), _cpu, level="")
        start = time.time()
        self._add(
            "process_start_time_seconds",
            "Start time of the process since unix epoch in seconds.",
            (),
            lambda: [((), start)],
            level="",
        )
        self.pod_worker_duration = registry.histogram(
            "kubelet_pod_worker_duration_seconds",
            "[ALPHA] Duration in seconds to sync a single pod. Broken down by operation type: create, update, or sync",
            _SECONDS,
            ("operation_type",),
        )
        self.started_pods = registry.counter("kubelet_started_pods_total", "[ALPHA] Cumulative number of pods started")
        self.started_pods_errors = registry.counter(
            "kubelet_started_pods_errors_total", "[ALPHA] Cumulative number of errors when starting pods"
        )
        self.started_containers = registry.counter(
            "kubelet_started_containers_total",
            "[ALPHA] Cumulative number of containers started",
            ("container_type",),
        )
        self.started_containers_errors = registry.counter(
            "kubelet_started_containers_errors_total",
            "[ALPHA] Containers that could not be started.",
            ("container_type", "code"),
        )
        self.terminated_containers = registry.counter(
            "kubelet_terminated_containers_total",
            "[ALPHA] Cumulative number of container terminations.",
            ("container_type", "exit_code", "reason"),
        )
        self.evictions = registry.counter(
            "kubelet_evictions", "[ALPHA] Cumulative number of pod evictions by eviction signal", ("eviction_signal",)
        )
        self.operations = registry.counter(
            "kubelet_runtime_operations_total",
            "[ALPHA] Cumulative number of runtime operations by operation type.",
            ("operation_type",),
        )
        self.operation_errors = registry.counter(
            "kubelet_runtime_operations_errors_total",
            "[ALPHA] Cumulative number of runtime operation errors by operation type.",
            ("operation_type",),
        )
        self.operation_duration = registry.histogram(
            "kubelet_runtime_operations_duration_seconds",
            "[ALPHA] Duration in seconds of runtime operations. Broken down by operation type.",
            _OPERATION_SECONDS,
            ("operation_type",),
        )

    def measure(self, runtime: Runtime, node: NodeMetrics) -> None:
        """Count the calls to a runtime from now on."""
        call = runtime._call

        async def counted(name: str, request: Any, seconds: float | None, *, wait: bool = False) -> Any:
            operation = _OPERATIONS.get(name) or _snake(name)
            begin = time.monotonic()
            try:
                return await call(name, request, seconds, wait=wait)
            except CRIError:
                self.operation_errors.inc(operation)
                if name == "RunPodSandbox":
                    node.sandbox_errors.inc(request.runtime_handler)
                raise
            finally:
                took = time.monotonic() - begin
                self.operations.inc(operation)
                self.operation_duration.observe(took, operation)
                if name == "RunPodSandbox":
                    node.sandbox_duration.observe(took, request.runtime_handler)

        runtime._call = counted  # type: ignore[method-assign]

    def watch(self, watchdog: LoopWatchdog) -> None:
        """Show the event loop's lag, and failures of this process's long-lived tasks."""
        for name, help, names, read in (
            (
                "pybernetes_event_loop_stalls_total",
                "How often the event loop was more than a second late.",
                (),
                lambda: [((), float(watchdog.stalls))],
            ),
            (
                "pybernetes_task_failures_total",
                "Failures of long-lived tasks.",
                ("task",),
                lambda: [((task,), float(count)) for task, count in sorted(tasks.failures.items())],
            ),
        ):
            self.registry.add(CounterFunction(name, f"[ALPHA] {help}", names, read))
        lag = "The latest tick of the event loop since the last scrape."
        self._add("pybernetes_event_loop_lag_seconds", lag, (), lambda: [((), watchdog.take_max_lag())])

    def count_ends(self, old: PodStatus, new: PodStatus) -> None:
        """Count the containers that have ended since the status before."""
        for kind, before, after in (
            ("init_container", old.init_container_statuses, new.init_container_statuses),
            ("container", old.container_statuses, new.container_statuses),
            ("ephemeral_container", old.ephemeral_container_statuses, new.ephemeral_container_statuses),
        ):
            ended = {each.name for each in before or () if each.state and each.state.terminated}
            for each in after or ():
                end = each.state.terminated if each.state else None
                if end is not None and each.name not in ended:
                    self.terminated_containers.inc(kind, str(end.exit_code or 0), end.reason or "")

    def _add(
        self,
        name: str,
        help: str,
        names: Labels,
        read: Callable[[], Iterable[tuple[Labels, float]]],
        level: str = "[ALPHA] ",
    ) -> None:
        self.registry.add(GaugeFunction(name, f"{level}{help}", names, read))

    def _running_pods(self) -> list[tuple[Labels, float]]:
        return [((), float(sum(each.sandbox is not None and each.sandbox.ready for each in self._observed())))]

    def _containers(self) -> list[tuple[Labels, float]]:
        found = Count(str(each.state) for pod in self._observed() for each in pod.containers)
        return [((state,), float(number)) for state, number in found.items()]

    def _desired_pods(self) -> list[tuple[Labels, float]]:
        static = Count(_is_static(each) for each in self._pods())
        return [(("true" if each else "",), float(static[each])) for each in (False, True)]


def _is_static(pod: Pod) -> bool:
    annotations = (pod.metadata.annotations if pod.metadata else None) or {}
    return annotations.get(labels.CONFIG_SOURCE, "api") != "api"


def _snake(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")


def _resident() -> list[tuple[Labels, float]]:
    with open("/proc/self/statm") as file:
        return [((), float(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")))]


def _cpu() -> list[tuple[Labels, float]]:
    return [((), time.process_time())]
