"""Computes a container's resources for the runtime: the fields of the CRI's LinuxContainerResources.

A dict and not the message, so that it can be compared, kept and tested without protobuf: the message is
`cri.LinuxContainerResources(**linux_resources(...))`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pybernetes.api.core.podrequests import has_pod_level_resources, pod_limits, pod_requests
from pybernetes.api.core.podresources import Quantities, parsed, qos_class
from pybernetes.api.core.v1 import Container, EphemeralContainer, Pod, PodSpec

from ..pod.critical import is_critical
from .config import QUOTA_PERIOD, UNLIMITED, hugepage_limits, milli_cpu_to_quota, milli_cpu_to_shares
from .oom import oom_score_adj


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """The node's settings that containers' resources depend on."""

    memory_capacity: int
    """Of the machine, in bytes."""
    cpu_cfs_quota: bool = True
    cpu_cfs_quota_period: int = QUOTA_PERIOD
    """Microseconds."""
    cgroup2: bool = False
    single_process_oom_kill: bool | None = None
    """Whether the kernel kills one process and not the container; None is what the cgroup version usually does."""
    swap: int = 0
    """Of the machine, in bytes."""
    limited_swap: bool = False
    """Whether Burstable pods may swap out a part of their memory; only on cgroup v2."""
    page_sizes: tuple[int, ...] = ()
    """Huge pages that the kernel knows, in bytes: those that a container does not ask for are limited to none."""


def linux_resources(
    pod: Pod,
    container: Container | EphemeralContainer,
    settings: ContainerSettings,
    *,
    cpuset: str = "",
    exclusive: bool = False,
) -> dict[str, Any]:
    """The fields for one container, from what the pod has been allocated.

    `cpuset` and `exclusive` are what the CPU manager says: CPUs of its own need no quota.
    """
    spec = pod.spec or PodSpec()
    requests = parsed(container.resources.requests if container.resources else None)
    limits = parsed(container.resources.limits if container.resources else None)
    of_pod = parsed(spec.resources.limits if spec.resources and has_pod_level_resources(spec) else None)
    cpu_limit = limits.get("cpu") or of_pod.get("cpu")
    memory_limit = limits.get("memory") or of_pod.get("memory")
    cpu_request = requests.get("cpu", cpu_limit)
    fields: dict[str, Any] = {
        "cpu_shares": milli_cpu_to_shares(cpu_request.milli_value() if cpu_request else 0),
        "oom_score_adj": oom_score_adj(pod, container, settings.memory_capacity),
    }
    if memory_limit:
        fields["memory_limit_in_bytes"] = memory_limit.value()
    if settings.cpu_cfs_quota:
        period = settings.cpu_cfs_quota_period
        quota = milli_cpu_to_quota(cpu_limit.milli_value() if cpu_limit else 0, period)
        fields["cpu_quota"] = UNLIMITED if exclusive else quota
        fields["cpu_period"] = period
    if cpuset:
        fields["cpuset_cpus"] = cpuset
    if settings.cgroup2 and settings.single_process_oom_kill is not True:
        fields["unified"] = {"memory.oom.group": "1"}
    _forbid_swap(fields, pod, requests, limits, settings)
    hugepages = hugepage_limits(limits)
    if settings.page_sizes or hugepages:
        fields["hugepage_limits"] = [
            {"page_size": page_size_text(size), "limit": hugepages.get(size, 0)}
            for size in sorted({*settings.page_sizes, *hugepages})
        ]
    return fields


def _forbid_swap(
    fields: dict[str, Any], pod: Pod, requests: Quantities, limits: Quantities, settings: ContainerSettings
) -> None:
    """No swap at all, or as much of it as the container requests of the machine's memory."""
    if not settings.swap:
        return
    if not settings.cgroup2:
        if "memory_limit_in_bytes" in fields:
            fields["memory_swap_limit_in_bytes"] = fields["memory_limit_in_bytes"]
        return
    memory = requests.get("memory")
    # Who gets all the memory that it asks for needs no swap, and who asks for none has no share in it.
    shares = (
        settings.limited_swap
        and memory is not None
        and 0 < memory.value() <= settings.memory_capacity
        and memory != limits.get("memory")
        and qos_class(pod.spec) == "Burstable"
        and not is_critical(pod)
    )
    allowed = int(memory.value() / settings.memory_capacity * settings.swap) if shares and memory is not None else 0
    fields["unified"] = {**fields.get("unified", {}), "memory.swap.max": str(allowed)}


def sandbox_resources(pod: Pod, settings: ContainerSettings) -> dict[str, Any]:
    """The fields for all containers of a pod together, which a sandbox in a virtual machine wants to know."""
    overhead = parsed(pod.spec.overhead if pod.spec else None)
    requests = _less(pod_requests(pod, use_status=False), overhead)
    return _fields(requests, _less(pod_limits(pod, use_status=False), overhead), settings)


def overhead_resources(pod: Pod, settings: ContainerSettings) -> dict[str, Any]:
    """The fields for a pod's overhead."""
    overhead = parsed(pod.spec.overhead if pod.spec else None)
    return _fields(overhead, overhead, settings) if overhead else {}


def page_size_text(size: int) -> str:
    """How the kernel names a huge page: `2MB`, `1GB`."""
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size % unit == 0:
            return f"{size // unit}{name}"
    return f"{size}B"


def _less(values: Quantities, overhead: Quantities) -> Quantities:
    return {
        name: values[name] - overhead[name] if name in overhead else values[name]
        for name in ("cpu", "memory")
        if name in values
    }


def _fields(requests: Quantities, limits: Quantities, settings: ContainerSettings) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "cpu_shares": milli_cpu_to_shares(requests["cpu"].milli_value() if "cpu" in requests else 0)
    }
    if limits.get("memory"):
        fields["memory_limit_in_bytes"] = limits["memory"].value()
    if settings.cpu_cfs_quota:
        period = settings.cpu_cfs_quota_period
        fields["cpu_period"] = period
        fields["cpu_quota"] = milli_cpu_to_quota(limits["cpu"].milli_value() if "cpu" in limits else 0, period)
    return fields
