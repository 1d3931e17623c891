"""Ranks pods for eviction: first those above their requests, then by low priority, then by usage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pybernetes.api.core.podrequests import has_pod_level_resources, pod_requests
from pybernetes.api.core.podresources import parsed
from pybernetes.api.core.v1 import Pod, PodSpec
from pybernetes.api.quantity import BINARY_SI, Quantity
from pybernetes.client.keys import uid_of

from .thresholds import EPHEMERAL_STORAGE, INODES, RESOURCES, Level, Threshold
from .usage import PodUsage

_UNKNOWN: Final = -1
"""Pods of unknown usage are ranked before all others."""

Usages = Mapping[str, PodUsage]


def rank(pods: Iterable[Pod], signal: str, usages: Usages, *, dedicated_imagefs: bool) -> list[Pod]:
    """The pods in the order of their eviction."""
    resource = RESOURCES[signal]
    if resource == "memory":
        return _ordered(pods, usages, lambda usage: usage.memory, "memory", "memory")
    if resource == "pids":
        return sorted(pods, key=lambda pod: (_priority(pod), _processes(pod, usages)))
    nodefs, imagefs = signal.startswith("nodefs"), not signal.startswith("nodefs")
    parts = {
        "rootfs": not dedicated_imagefs or imagefs,
        "logs": not dedicated_imagefs or nodefs,
        "volumes": not dedicated_imagefs or nodefs,
    }
    if resource == INODES:
        return _ordered(pods, usages, lambda usage: usage.disk(**parts).inodes, INODES, EPHEMERAL_STORAGE)
    return _ordered(pods, usages, lambda usage: usage.disk(**parts).bytes, EPHEMERAL_STORAGE, EPHEMERAL_STORAGE)


def eviction_message(
    pod: Pod, resource: str, usages: Usages, thresholds: Iterable[Threshold], levels: Mapping[str, Level]
) -> tuple[str, dict[str, str]]:
    """Why a pod goes, and the annotations for its event."""
    message = f"The node was low on resource: {resource}. "
    for threshold in thresholds:
        if threshold.resource == resource and (level := levels.get(threshold.signal)):
            least, left = threshold.amount.of(level.capacity), Quantity(level.available, 0, _format(resource))
            message += f"Threshold quantity: {least}, available: {left}. "
            break
    usage = usages.get(uid_of(pod))
    if usage is None:
        return message, {}
    annotations: dict[str, str] = {}
    spec = pod.spec or PodSpec()
    if resource == "memory" and spec.resources is not None and has_pod_level_resources(spec):
        request = parsed(spec.resources.requests).get("memory")
        if request is not None:
            name, used = pod.metadata.name if pod.metadata else "", _bytes(usage.memory)
            message += f"Pod {name} was using {used}, request is {request}, has larger consumption of {resource}. "
            annotations |= {"offending_pod": name or "", "offending_pod_usage": str(used)}
    names, amounts = [], []
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        found = usage.containers.get(container.name or "")
        if found is None or resource not in ("memory", EPHEMERAL_STORAGE):
            continue
        used = _bytes(found.memory if resource == "memory" else found.rootfs.bytes + found.logs.bytes)
        asked = parsed(container.resources.requests if container.resources else None).get(resource) or Quantity(0)
        if used > asked:
            message += (
                f"Container {container.name} was using {used}, request is {asked}, "
                f"has larger consumption of {resource}. "
            )
            names.append(container.name or "")
            amounts.append(str(used))
    annotations["offending_containers"] = ",".join(names)
    annotations["offending_containers_usage"] = ",".join(amounts)
    annotations["starved_resource"] = resource
    return message, annotations


def _ordered(
    pods: Iterable[Pod], usages: Usages, used: Callable[[PodUsage], int], exceeds: str, relative_to: str
) -> list[Pod]:
    def key(pod: Pod) -> tuple[int, int, int]:
        usage = usages.get(uid_of(pod))
        if usage is None:
            return _UNKNOWN, _priority(pod), 0
        amount = used(usage)
        return int(amount <= _request(pod, exceeds)), _priority(pod), _request(pod, relative_to) - amount

    return sorted(pods, key=key)


def _request(pod: Pod, resource: str) -> int:
    asked = pod_requests(pod, use_status=False).get(resource)
    return asked.value() if asked else 0


def _processes(pod: Pod, usages: Usages) -> tuple[int, int]:
    usage = usages.get(uid_of(pod))
    return (_UNKNOWN, 0) if usage is None else (0, -usage.processes)


def _priority(pod: Pod) -> int:
    return (pod.spec.priority or 0) if pod.spec else 0


def _bytes(value: int) -> Quantity:
    return Quantity(value, 0, BINARY_SI)


def _format(resource: str) -> str:
    return "DecimalSI" if resource in (INODES, "pids") else BINARY_SI
