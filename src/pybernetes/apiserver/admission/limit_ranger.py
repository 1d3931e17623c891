"""LimitRanges: defaults and bounds for what one container, pod or claim of a namespace asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from pybernetes.api.core.podresources import (
    Quantities,
    aggregate_container_limits,
    aggregate_container_requests,
    quantity,
)
from pybernetes.api.core.v1 import (
    Container,
    LimitRange,
    LimitRangeItem,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    ResourceRequirements,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.quantity import MAX_INT64, Quantity

from ..authz.messages import aggregate
from ..registry.lister import Lister, lister
from .plugin import CREATE, UPDATE, Attributes, Plugin, forbidden

if TYPE_CHECKING:
    from ..registry.registry import Registry

ANNOTATION: Final = "kubernetes.io/limit-ranger"
_MAX_MILLI: Final = MAX_INT64 // 1000
_POD_LEVEL: Final = ("cpu", "memory")
_NONE: Final = Quantity(0)
MAX_ADDED: Final = 50_000
"""Requests and limits that are added to one pod; with so many the pod would be too large to be stored."""


class LimitRanger(Plugin):
    """Upstream's LimitRanger. The containers of a pod do not change, so an update is only seen when it resizes."""

    name = "LimitRanger"
    operations = (CREATE, UPDATE)
    resources = ("pods", "pods/resize", "persistentvolumeclaims")

    def __init__(self, registry: Registry, configuration: Any = None) -> None:
        super().__init__(registry)
        self.sleep_without("", "v1", "limitranges")

    def admit(self, attributes: Attributes) -> None:
        if attributes.resource.plural != "pods":
            return
        added = 0
        for limit_range in self._ranges(attributes):
            added += _set_defaults(attributes.new, limit_range, MAX_ADDED - added)
            if added > MAX_ADDED:
                raise forbidden(attributes, f"limit ranges would add more than {MAX_ADDED} requests and limits to it")

    def validate(self, attributes: Attributes) -> None:
        ranges = self._ranges(attributes)
        if not ranges:
            return
        judge: Callable[[LimitRangeItem], Iterator[str]]
        if attributes.resource.plural == "pods":
            judge = _PodUsage(attributes.new).errors
        else:
            judge = partial(_claim_errors, attributes.new)
        for limit_range in ranges:
            items = (limit_range.spec.limits if limit_range.spec else None) or ()
            errors = [error for item in items for error in judge(item)]
            if errors:
                raise forbidden(attributes, aggregate(errors))

    @cached_property
    def _all(self) -> Lister[LimitRange]:
        return lister(self.registry, "", "v1", "limitranges")

    def _ranges(self, attributes: Attributes) -> list[LimitRange]:
        found = self._all.list(attributes.namespace)
        if not found:
            return found
        if attributes.operation == UPDATE:
            if attributes.resource.plural == "pods" and not attributes.subresource:
                return []
            if attributes.old is not None and attributes.old.metadata.deletion_timestamp:
                return []
        return found


# -- defaults ---------------------------------------------------------------------------------------------------


def _set_defaults(pod: Pod, limit_range: LimitRange, most: int) -> int:
    """Fill in what containers do not say, and note in the pod what was filled in.

    Returns how many requests and limits were added; stops behind `most` of them.
    """
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for item in (limit_range.spec.limits if limit_range.spec else None) or ():
        if item.type == "Container":
            requests.update(item.default_request or {})
            limits.update(item.default or {})
    if not requests and not limits:
        return 0
    spec = pod.spec or PodSpec()
    notes: list[str] = []
    count = 0
    for what, containers in (("container", spec.containers), ("init container", spec.init_containers)):
        for container in containers or ():
            for added, note in _fill(container, requests, limits, what):
                count += added
                notes.append(note)
            if count > most:
                return count
    if notes:
        meta = pod.metadata = pod.metadata or ObjectMeta()
        text = f"LimitRanger plugin set: {'; '.join(notes)}"
        meta.annotations = {**(meta.annotations or {}), ANNOTATION: text}
    return count


def _fill(
    container: Container, requests: Mapping[str, Any], limits: Mapping[str, Any], what: str
) -> Iterator[tuple[int, str]]:
    resources = container.resources = container.resources or ResourceRequirements()
    for field, defaults in (("request", requests), ("limit", limits)):
        present = getattr(resources, f"{field}s") or {}
        added = sorted(defaults.keys() - present.keys())
        if added:
            setattr(resources, f"{field}s", {**present, **{name: defaults[name] for name in added}})
            yield len(added), f"{', '.join(added)} {field} for {what} {container.name}"


# -- bounds -----------------------------------------------------------------------------------------------------


class _PodUsage:
    """The requests and limits of a pod and its containers, computed once for all limit ranges of the namespace."""

    def __init__(self, pod: Pod) -> None:
        self._spec = pod.spec or PodSpec()

    @cached_property
    def _containers(self) -> list[tuple[Quantities, Quantities]]:
        found = []
        for container in (*(self._spec.containers or ()), *(self._spec.init_containers or ())):
            resources = container.resources
            requests = _quantities(resources.requests if resources else None)
            found.append((requests, _quantities(resources.limits if resources else None)))
        return found

    @cached_property
    def _pod(self) -> tuple[Quantities, Quantities]:
        spec = self._spec
        requests, limits = aggregate_container_requests(spec), aggregate_container_limits(spec)
        if spec.resources is not None:
            requests.update(_of_whole_pod(spec.resources.requests))
            limits.update(_of_whole_pod(spec.resources.limits))
        return requests, limits

    def errors(self, item: LimitRangeItem) -> Iterator[str]:
        """The violations of an item by the pod."""
        if item.type == "Container":
            for requests, limits in self._containers:
                yield from _errors(item, requests, limits)
        elif item.type == "Pod":
            yield from _errors(item, *self._pod)


def _claim_errors(claim: PersistentVolumeClaim, item: LimitRangeItem) -> Iterator[str]:
    """A claim has no limits; its requests are held against both bounds."""
    if item.type != "PersistentVolumeClaim":
        return
    resources = claim.spec.resources if claim.spec else None
    requests = _quantities(resources.requests if resources else None)
    yield from _each(item.min, lambda name, bound: _below(item, name, bound, requests, {}))
    yield from _each(item.max, lambda name, bound: _request_above(item, name, bound, requests))


def _errors(item: LimitRangeItem, requests: Quantities, limits: Quantities) -> Iterator[str]:
    yield from _each(item.min, lambda name, bound: _below(item, name, bound, requests, limits))
    yield from _each(item.max, lambda name, bound: _above(item, name, bound, requests, limits))
    ratios = item.max_limit_request_ratio
    yield from _each(ratios, lambda name, bound: _out_of_ratio(item, name, bound, requests, limits))


def _each(bounds: Mapping[str, Any] | None, check: Callable[[str, Quantity], str]) -> Iterator[str]:
    for name in sorted(bounds or ()):
        error = check(name, quantity((bounds or {})[name]))
        if error:
            yield error


def _below(item: LimitRangeItem, name: str, bound: Quantity, requests: Quantities, limits: Quantities) -> str:
    start = f"minimum {name} usage per {item.type} is {bound}"
    request, limit, least = _comparable(requests.get(name), limits.get(name), bound)
    if name not in requests:
        return f"{start}.  No request is specified"
    if request < least:
        return f"{start}, but request is {requests[name]}"
    return f"{start}, but limit is {limits[name]}" if name in limits and limit < least else ""


def _above(item: LimitRangeItem, name: str, bound: Quantity, requests: Quantities, limits: Quantities) -> str:
    start = f"maximum {name} usage per {item.type} is {bound}"
    request, limit, most = _comparable(requests.get(name), limits.get(name), bound)
    if name not in limits:
        return f"{start}.  No limit is specified"
    if limit > most:
        return f"{start}, but limit is {limits[name]}"
    return f"{start}, but request is {requests[name]}" if name in requests and request > most else ""


def _request_above(item: LimitRangeItem, name: str, bound: Quantity, requests: Quantities) -> str:
    start = f"maximum {name} usage per {item.type} is {bound}"
    request, _, most = _comparable(requests.get(name), None, bound)
    if name not in requests:
        return f"{start}.  No request is specified"
    return f"{start}, but request is {requests[name]}" if request > most else ""


def _out_of_ratio(item: LimitRangeItem, name: str, bound: Quantity, requests: Quantities, limits: Quantities) -> str:
    start = f"{name} max limit to request ratio per {item.type} is {bound}"
    request, limit, _ = _comparable(requests.get(name), limits.get(name), bound)
    if not request:
        return f"{start}, but no request is specified or request is 0"
    if not limit:
        return f"{start}, but no limit is specified or limit is 0"
    ratio = limit / request
    exact = bound.value() <= _MAX_MILLI
    exceeded = ratio * 1000 > bound.milli_value() if exact else ratio > bound.value()
    return f"{start}, but provided ratio is {ratio:f}" if exceeded else ""


def _comparable(request: Quantity | None, limit: Quantity | None, bound: Quantity) -> tuple[int, int, int]:
    """All three in thousandths, or in whole numbers if one of them is too large for that."""
    values = (request or _NONE, limit or _NONE, bound)
    exact = all(each.value() <= _MAX_MILLI for each in values)
    first, second, third = (each.milli_value() if exact else each.value() for each in values)
    return first, second, third


def _quantities(resources: Mapping[str, Any] | None) -> Quantities:
    return {name: quantity(value) for name, value in (resources or {}).items()}


def _of_whole_pod(resources: Mapping[str, Any] | None) -> Quantities:
    return {name: value for name, value in _quantities(resources).items() if name in _POD_LEVEL}
