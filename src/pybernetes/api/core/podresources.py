"""The sum of a pod's container requests and limits, and its QoS class.

Init containers run one after the other and before the rest, so the pod needs the larger of their peak and the sum of
the others; sidecars (init containers that restart always) stay and count with both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..quantity import Quantity, parse
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
    return aggregate(spec, lambda each, _: parsed(each.resources.requests if each.resources else None))


def aggregate_container_limits(spec: PodSpec) -> Quantities:
    """The limits of all containers together."""
    return aggregate(spec, lambda each, _: parsed(each.resources.limits if each.resources else None))


def aggregate(spec: PodSpec, part: Callable[[Container, bool], Quantities]) -> Quantities:
    """All containers together. `part` is what one takes, a dict of its own; its flag says that the container stays."""
    total: Quantities = {}
    for container in spec.containers or ():
        add(total, part(container, True))
    sidecars: Quantities = {}
    peak: Quantities = {}
    for container in spec.init_containers or ():
        stays = is_sidecar(container)
        wanted = part(container, stays)
        if stays:
            add(total, wanted)
            add(sidecars, wanted)
            wanted = sidecars
        else:
            add(wanted, sidecars)
        raise_to(peak, wanted)
    raise_to(total, peak)
    return total


def parsed(resources: ResourceList | None) -> Quantities:
    """The quantities of a field, in a dict of its own."""
    return {name: quantity(value) for name, value in resources.items()} if resources else {}


def add(into: Quantities, more: Quantities) -> None:
    """Resource by resource, the sum."""
    for name, value in more.items():
        into[name] = into[name] + value if name in into else value


def raise_to(into: Quantities, more: Quantities) -> None:
    """Resource by resource, the larger one."""
    for name, value in more.items():
        if name not in into or value > into[name]:
            into[name] = value


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
