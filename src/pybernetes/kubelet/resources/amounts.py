"""CPU and memory of a container or pod as four numbers, and the pod with other ones in its spec. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pybernetes.api.core.podresources import parsed
from pybernetes.api.core.v1 import Container, Pod, PodSpec, ResourceRequirements
from pybernetes.api.quantity import Quantity
from pybernetes.client.keys import copy


class Amounts(NamedTuple):
    """The resources that can be resized; 0 = not set. Memory in bytes, CPU in thousandths."""

    memory_limit: int = 0
    memory_request: int = 0
    cpu_limit: int = 0
    cpu_request: int = 0


def amounts(resources: ResourceRequirements | None) -> Amounts:
    """The numbers of a field."""
    limits = parsed(resources.limits if resources else None)
    requests = parsed(resources.requests if resources else None)
    return Amounts(
        _value(limits.get("memory")),
        _value(requests.get("memory")),
        _milli(limits.get("cpu")),
        _milli(requests.get("cpu")),
    )


def container_amounts(of_pod: ResourceRequirements | None, own: ResourceRequirements | None) -> Amounts:
    """The numbers that count for a container: it has the pod's limits where it has none of its own."""
    mine, pods = amounts(own), amounts(of_pod)
    return mine._replace(
        memory_limit=mine.memory_limit or pods.memory_limit, cpu_limit=mine.cpu_limit or pods.cpu_limit
    )


def resizable(spec: PodSpec) -> Iterator[Container]:
    """The containers whose resources can change: all but ephemeral ones."""
    yield from spec.init_containers or ()
    yield from spec.containers or ()


def same(one: ResourceRequirements | None, other: ResourceRequirements | None) -> bool:
    """Whether two fields ask for the same, however it is written."""
    return _compared(one) == _compared(other)


def with_resources(
    pod: Pod,
    containers: Mapping[str, ResourceRequirements],
    of_pod: ResourceRequirements | None,
) -> Pod:
    """The pod with these resources in its spec; the same object if it has them already."""
    spec = pod.spec
    if spec is None:
        return pod
    changed = {
        each.name: containers[each.name or ""]
        for each in resizable(spec)
        if (each.name or "") in containers and not same(each.resources, containers[each.name or ""])
    }
    if not changed and same(spec.resources, of_pod):
        return pod
    result = copy(pod)
    assert result.spec is not None
    result.spec.resources = copy(of_pod) if of_pod is not None else None
    for each in resizable(result.spec):
        if each.name in changed:
            each.resources = copy(changed[each.name])
    return result


def _compared(resources: ResourceRequirements | None) -> tuple[dict[str, Quantity], dict[str, Quantity], object]:
    if resources is None:
        return {}, {}, None
    return parsed(resources.limits), parsed(resources.requests), resources.claims or None


def _value(value: Quantity | None) -> int:
    return value.value() if value else 0


def _milli(value: Quantity | None) -> int:
    return value.milli_value() if value else 0
