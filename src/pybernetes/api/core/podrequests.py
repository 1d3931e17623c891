"""The requests of a pod as a whole, counted as the scheduler and quotas count it.

Containers together (`podresources.py` has the plain sum of a spec), with a pod that is being resized counted at the
larger of what it has and what it wants; then what the pod itself asks for in their place; then its overhead.
"""

from __future__ import annotations

from collections.abc import Callable

from .podresources import Quantities, ResourceList, aggregate, parsed, quantity, raise_to
from .resourcenames import is_supported_pod_level
from .v1.container import Container, ContainerStatus
from .v1.pod import Pod, PodSpec, PodStatus

_Part = Callable[[Container, ContainerStatus | None, bool], Quantities]


def pod_requests(pod: Pod, *, use_status: bool = True, missing: Quantities | None = None) -> Quantities:
    """The requests of a pod with its overhead; `use_status` counts what a resize has already taken.

    `missing` is counted for every container that does not say how much of a resource it wants.
    """
    spec = pod.spec or PodSpec()
    status = pod.status if use_status else None
    part: _Part = (lambda *args: {**missing, **_requests(*args)}) if missing else _requests
    total = _aggregate(spec, status, part)
    if spec.resources is not None:
        for name, value in (spec.resources.requests or {}).items():
            if is_supported_pod_level(name):
                total[name] = quantity(value)
    for name, value in (spec.overhead or {}).items():
        total[name] = total[name] + quantity(value) if name in total else quantity(value)
    return total


def pod_limits(pod: Pod, *, use_status: bool = True) -> Quantities:
    """The limits of a pod; its overhead only raises limits that are there."""
    spec = pod.spec or PodSpec()
    status = pod.status if use_status else None
    total = _aggregate(spec, status, _limits)
    if spec.resources is not None:
        for name, value in (spec.resources.limits or {}).items():
            if is_supported_pod_level(name):
                total[name] = quantity(value)
    for name, value in (spec.overhead or {}).items():
        if total.get(name):
            total[name] = total[name] + quantity(value)
    return total


def has_pod_level_resources(spec: PodSpec) -> bool:
    """Whether the pod itself asks for something, beside its containers."""
    resources = spec.resources
    return resources is not None and any(
        is_supported_pod_level(name) for name in (*(resources.requests or ()), *(resources.limits or ()))
    )


def is_resize_infeasible(status: PodStatus | None) -> bool:
    """Whether the node has refused the resize that was asked for."""
    for condition in (status.conditions if status else None) or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _requests(container: Container, status: ContainerStatus | None, infeasible: bool) -> Quantities:
    wanted = container.resources.requests if container.resources else None
    if status is None or status.resources is None:
        return _maximum(wanted)
    has = (status.resources.requests, status.allocated_resources)
    return _maximum(*has) if infeasible else _maximum(wanted, *has)


def _limits(container: Container, status: ContainerStatus | None, infeasible: bool) -> Quantities:
    wanted = container.resources.limits if container.resources else None
    if status is None or status.resources is None:
        return _maximum(wanted)
    return _maximum(status.resources.limits) if infeasible else _maximum(wanted, status.resources.limits)


def _aggregate(spec: PodSpec, status: PodStatus | None, part: _Part) -> Quantities:
    known = _statuses(status)
    infeasible = is_resize_infeasible(status)
    # An init container that ends cannot be resized: what its status says is not looked at.
    return aggregate(spec, lambda each, stays: part(each, known.get(each.name) if stays else None, infeasible))


def _statuses(status: PodStatus | None) -> dict[str | None, ContainerStatus]:
    if status is None:
        return {}
    return {each.name: each for each in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}


def _maximum(*lists: ResourceList | None) -> Quantities:
    result: Quantities = {}
    for each in lists:
        raise_to(result, parsed(each))
    return result
