"""What a pod's containers ask for together, and the quality of service that follows from it.

Init containers run one after the other and before the rest, so the pod needs the larger of their peak and the sum of
the others; sidecars (init containers that restart always) stay and count with both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..quantity import Quantity, parse
from .v1.compute import ResourceRequirements
from .v1.container import Container
from .v1.pod import PodSpec

ResourceList = Mapping[str, Any]
Quantities = dict[str, Quantity]

_QOS = ("cpu", "memory")


def quantity(value: Any) -> Quantity:
    """The quantity of a field that has been through defaulting."""
    return parse(value if type(value) is str else str(value))


def is_sidecar(container: Container) -> bool:
    """Whether an init container keeps running beside the others."""
    return container.restart_policy == "Always"


def aggregate_container_requests(spec: PodSpec) -> Quantities:
    """The requests of all containers together."""
    return _aggregate(spec, lambda resources: resources.requests)


def aggregate_container_limits(spec: PodSpec) -> Quantities:
    """The limits of all containers together."""
    return _aggregate(spec, lambda resources: resources.limits)


def _aggregate(spec: PodSpec, part: Callable[[ResourceRequirements], ResourceList | None]) -> Quantities:
    total: Quantities = {}
    for container in spec.containers or ():
        if container.resources is not None:
            _add(total, _parsed(part(container.resources)))
    sidecars: Quantities = {}
    peak: Quantities = {}
    for container in spec.init_containers or ():
        wanted = _parsed(part(container.resources)) if container.resources is not None else {}
        if is_sidecar(container):
            _add(total, wanted)
            _add(sidecars, wanted)
            wanted = sidecars
        else:
            _add(wanted, sidecars)
        _maximum(peak, wanted)
    _maximum(total, peak)
    return total


def qos_class(spec: PodSpec | None) -> str:
    """BestEffort if nothing is asked for, Guaranteed if every limit is set and requested, else Burstable."""
    if spec is None:
        return "BestEffort"
    requests: Quantities = {}
    limits: Quantities = {}
    guaranteed = True
    if spec.resources is not None:
        _add_positive(requests, spec.resources.requests)
        if spec.resources.limits:
            guaranteed = _add_positive(limits, spec.resources.limits) == 2
    else:
        for container in (*(spec.containers or ()), *(spec.init_containers or ())):
            resources = container.resources
            if resources is None or not (resources.requests or resources.limits):
                guaranteed = False
                continue
            _add_positive(requests, resources.requests)
            guaranteed &= _add_positive(limits, resources.limits) == 2
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _add_positive(into: Quantities, more: ResourceList | None) -> int:
    """How many of CPU and memory were there."""
    found = 0
    for name in _QOS if more else ():
        value = quantity(more[name]) if more and name in more else None
        if value is not None and value.sign() > 0:
            found += 1
            into[name] = into[name] + value if name in into else value
    return found


def _parsed(resources: ResourceList | None) -> Quantities:
    return {name: quantity(value) for name, value in resources.items()} if resources else {}


def _add(into: Quantities, more: Quantities) -> None:
    for name, value in more.items():
        into[name] = into[name] + value if name in into else value


def _maximum(into: Quantities, more: Quantities) -> None:
    for name, value in more.items():
        if name not in into or value > into[name]:
            into[name] = value
