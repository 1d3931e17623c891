"""Plans a resize: which running containers are updated in place, in which order, and which restart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from pybernetes.api.core.v1 import Container, Pod, PodSpec

from ..cgroups.config import quota_to_milli_cpu
from ..runtime.types import ObservedContainer, ObservedPod
from .amounts import Amounts, amounts, container_amounts, resizable
from .reporting import MIN_MILLI_CPU_LIMIT, linux_resources_of
from .state import PodResources

MEMORY: Final = "memory"
CPU: Final = "cpu"
Resource = Literal["memory", "cpu"]


@dataclass(frozen=True, slots=True)
class Update:
    """A container whose limits are changed while it runs."""

    container: Container
    id: str
    current: Amounts
    desired: Amounts


@dataclass(slots=True)
class ResizePlan:
    """The steps of a resize. In each list decreases come before increases, so that the pod's limit holds all the
    time."""

    updates: dict[Resource, list[Update]] = field(default_factory=lambda: {"memory": [], "cpu": []})
    restarts: set[str] = field(default_factory=set)
    """Names of containers whose policy wants a restart."""
    idle: list[Container] = field(default_factory=list)
    """Containers that do not run, and will have other resources when they start."""
    pod: bool = False
    """Whether the pod's own cgroup must be looked at even if no container is updated."""

    @property
    def nothing(self) -> bool:
        """Whether everything is as allocated."""
        return not (self.pod or any(self.updates.values()))


def plan_resize(pod: Pod, actuated: PodResources | None, observed: ObservedPod) -> ResizePlan:
    """Compare what a pod has been allocated (its spec) with what was given to its containers before."""
    spec = pod.spec or PodSpec()
    if actuated is None and not observed.running():
        return ResizePlan()  # a new pod: it starts with what it has been allocated
    before = actuated or PodResources()
    plan = ResizePlan(pod=amounts(spec.resources) != amounts(before.pod))
    for container in resizable(spec):
        found = observed.container(container.name or "")
        current, desired = _compare(spec, container, before, found)
        if current == desired:
            continue
        if found is None or not found.running:
            plan.idle.append(container)
            plan.pod = True
        elif _restarts(container, current, desired):
            plan.restarts.add(container.name or "")
            plan.pod = True
        else:
            _add(plan, container, found, current, desired)
    return plan


def in_progress(pod: Pod, actuated: PodResources | None, observed: ObservedPod) -> bool:
    """Whether something that runs does not have what is allocated."""
    spec = pod.spec or PodSpec()
    before = actuated or PodResources()
    if before.pod is not None and spec.resources is not None and amounts(spec.resources) != amounts(before.pod):
        return True
    for container in resizable(spec):
        found = observed.container(container.name or "")
        if found is not None and found.running:
            current, desired = _compare(spec, container, before, found)
            if current != desired:
                return True
    return False


def _compare(
    spec: PodSpec, container: Container, before: PodResources, found: ObservedContainer | None
) -> tuple[Amounts, Amounts]:
    """The current and the desired amounts of a container.

    Limits of the pod it has since its start: one that has restarted has the new ones, though the pod itself may not.
    """
    current = container_amounts(before.pod, before.containers.get(container.name or ""))
    desired = container_amounts(spec.resources, container.resources)
    linux = linux_resources_of(found.resources) if found is not None and found.running else None
    if linux is not None:
        own = amounts(container.resources)
        if not own.memory_limit and linux.memory_limit_in_bytes == desired.memory_limit:
            current = current._replace(memory_limit=desired.memory_limit)
        quota = quota_to_milli_cpu(linux.cpu_quota, linux.cpu_period)
        if not own.cpu_limit and quota == max(desired.cpu_limit, MIN_MILLI_CPU_LIMIT):
            current = current._replace(cpu_limit=desired.cpu_limit)
    return current, desired


def _restarts(container: Container, current: Amounts, desired: Amounts) -> bool:
    changed = set()
    if (current.memory_limit, current.memory_request) != (desired.memory_limit, desired.memory_request):
        changed.add(MEMORY)
    if (current.cpu_limit, current.cpu_request) != (desired.cpu_limit, desired.cpu_request):
        changed.add(CPU)
    return any(
        each.resource_name in changed and each.restart_policy == "RestartContainer"
        for each in container.resize_policy or ()
    )


def _add(plan: ResizePlan, container: Container, found: ObservedContainer, current: Amounts, desired: Amounts) -> None:
    update = Update(container, found.id, current, desired)
    pairs: list[tuple[Resource, tuple[int, int], tuple[int, int]]] = [
        ("memory", (current.memory_limit, desired.memory_limit), (current.memory_request, desired.memory_request)),
        ("cpu", (current.cpu_limit, desired.cpu_limit), (current.cpu_request, desired.cpu_request)),
    ]
    for resource, limit, request in pairs:
        old, new = limit if limit[0] != limit[1] else request
        if new > old:
            plan.updates[resource].append(update)
        elif new < old:
            plan.updates[resource].insert(0, update)
