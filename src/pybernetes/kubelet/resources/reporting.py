"""Fills in a pod's status with resources: the allocated ones, and those that containers have."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.core.podrequests import pod_limits, pod_requests
from pybernetes.api.core.podresources import Quantities, parsed
from pybernetes.api.core.v1 import ContainerStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from pybernetes.api.quantity import BINARY_SI, Quantity
from pybernetes.api.types import Quantity as QuantityField
from pybernetes.client.keys import copy

from ..cgroups.config import MIN_SHARES, CgroupConfig, quota_to_milli_cpu, shares_to_milli_cpu
from ..runtime.types import AnyContainer, ObservedContainer

MIN_MILLI_CPU_LIMIT: Final = 10
"""The least quota (1 ms in 100) as CPU: below, what a cgroup says is not what was asked for."""


def container_resources(
    container: AnyContainer,
    found: ObservedContainer,
    old: ContainerStatus | None,
    given: ResourceRequirements | None = None,
) -> ResourceRequirements:
    """For a container's status: as allocated, with what the runtime says in its place while it runs.

    `given` is what it was last given, for what the runtime does not know: requests of memory, or everything.
    """
    resources = copy(container.resources) if container.resources else ResourceRequirements()
    if not found.running:
        return resources
    linux = linux_resources_of(found.resources)
    before = ResourceRequirements()
    if given is not None:
        before = given
    elif (
        old is not None
        and old.state is not None
        and old.state.running is not None
        and old.resources is not None
        and (old.container_id or "").partition("://")[2] == found.id
    ):
        before = old.resources
    if resources.limits is not None:
        cpu = quota_to_milli_cpu(linux.cpu_quota, linux.cpu_period) if linux is not None else 0
        _set_cpu(resources.limits, cpu, MIN_MILLI_CPU_LIMIT, before.limits)
        memory = linux.memory_limit_in_bytes if linux is not None else 0
        _set_memory(resources.limits, memory, before.limits)
    if resources.requests is not None:
        cpu = shares_to_milli_cpu(linux.cpu_shares) if linux is not None else 0
        _set_cpu(resources.requests, cpu, MIN_SHARES, before.requests)
        _set_memory(resources.requests, 0, before.requests)
    return resources


def pod_resources(
    pod: Pod, cgroup: CgroupConfig | None, old: PodStatus | None, given: Pod | None = None
) -> ResourceRequirements:
    """For the pod's `status.resources`: `pod` is the allocated one, `cgroup` what its cgroup says while it runs.

    `given` is the pod with what its containers were last given: no cgroup knows requests of memory.
    """
    spec = pod.spec or PodSpec()
    resources = copy(spec.resources) if spec.resources is not None else ResourceRequirements()
    requests = _written(pod_requests(pod, use_status=False))
    if cgroup is None:
        resources.requests = requests or None
        resources.limits = _written(pod_limits(pod, use_status=False)) or None
        return resources
    before = ResourceRequirements()
    if given is not None:
        before = ResourceRequirements(requests=_written(pod_requests(given, use_status=False)))
    elif old is not None and old.phase == "Running" and old.resources is not None:
        before = old.resources
    mine = dict(resources.requests or {})
    _set_cpu(mine, shares_to_milli_cpu(cgroup.cpu_shares or 0), MIN_SHARES, before.requests)
    if "memory" not in mine and "memory" in requests:
        mine["memory"] = requests["memory"]
    _set_memory(mine, 0, before.requests)
    limits = dict(resources.limits or {})
    quota = -1 if cgroup.cpu_quota is None else cgroup.cpu_quota
    _set_cpu(limits, quota_to_milli_cpu(quota, cgroup.cpu_period or 0), MIN_MILLI_CPU_LIMIT, before.limits)
    _set_memory(limits, max(0, cgroup.memory or 0), before.limits)
    resources.requests, resources.limits = mine or None, limits or None
    return resources


def allocated_resources(pod: Pod) -> dict[str, QuantityField] | None:
    """For the pod's `status.allocatedResources`: what it was allocated in all."""
    return _written(pod_requests(pod, use_status=False)) or None


def _written(values: Quantities) -> dict[str, QuantityField]:
    return {name: str(value) for name, value in values.items()}


def _set_cpu(into: dict[str, QuantityField], actual: int, least: int, before: dict[str, QuantityField] | None) -> None:
    if not actual:
        if before and "cpu" in before:
            into["cpu"] = before["cpu"]
        return
    allocated = parsed(into).get("cpu")
    if actual > least or (allocated is not None and allocated.milli_value() > least):
        into["cpu"] = str(Quantity.milli(actual))


def _set_memory(into: dict[str, QuantityField], actual: int, before: dict[str, QuantityField] | None) -> None:
    if actual > 0:
        into["memory"] = str(Quantity(actual, 0, BINARY_SI))
    elif before and "memory" in before:
        into["memory"] = before["memory"]


def linux_resources_of(resources: Any) -> Any:
    """CRI's LinuxContainerResources in the status of a container, None if the runtime does not tell."""
    return resources.linux if resources is not None and resources.HasField("linux") else None
