"""Whether an APIService is available: the condition, its reasons and its words as upstream has them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pybernetes.api.apiregistration.v1 import APIService, APIServiceCondition, APIServiceStatus
from pybernetes.api.gocompat.quote import quote

AVAILABLE = "Available"


def condition(status: str, reason: str, message: str) -> APIServiceCondition:
    """The condition Available, without a time."""
    return APIServiceCondition(type=AVAILABLE, status=status, reason=reason, message=message)


LOCAL = condition("True", "Local", "Local APIServices are always available")
PASSED = condition("True", "Passed", "all checks passed")


def obstacle(spec: Any, service: Any | None, slices: Sequence[Any]) -> APIServiceCondition | None:
    """The condition that makes an APIService unavailable without asking its server; None if there is none."""
    reference = spec.service
    shown = f"service/{reference.name} in {quote(reference.namespace or '')}"
    if service is None:
        return condition("False", "ServiceNotFound", f"{shown} is not present")
    if (service.spec.type or "ClusterIP") != "ClusterIP":
        return None
    port = next((each for each in service.spec.ports or () if each.port == reference.port), None)
    if port is None:
        message = f"{shown} is not listening on port {reference.port}"
        return condition("False", "ServicePortError", message)
    if not slices:
        return condition("False", "EndpointsNotFound", f"cannot find endpointslices for {shown}")
    if not any(_is_served(each, port.name or "") for each in slices):
        message = f"endpointslices for {shown} have no addresses with port name {quote(port.name or '')}"
        return condition("False", "MissingEndpoints", message)
    return None


def _is_served(slice: Any, port: str) -> bool:
    ready = any(each.conditions is None or each.conditions.ready is not False for each in slice.endpoints or ())
    return ready and any((each.name or "") == port and each.port is not None for each in slice.ports or ())


def is_available(obj: APIService) -> bool:
    """Whether the condition says so."""
    found = current(obj)
    return found is not None and found.status == "True"


def current(obj: APIService) -> APIServiceCondition | None:
    """The condition as it was last written."""
    conditions = (obj.status and obj.status.conditions) or ()
    return next((each for each in conditions if each.type == AVAILABLE), None)


def says(obj: APIService, wanted: APIServiceCondition) -> bool:
    """Whether this is what the condition says already."""
    found = current(obj)
    return found is not None and (found.status, found.reason or "", found.message or "") == (
        wanted.status,
        wanted.reason or "",
        wanted.message or "",
    )


def put(obj: APIService, wanted: APIServiceCondition, now: str) -> None:
    """Write the condition; its time is that of the last change of its status."""
    obj.status = obj.status or APIServiceStatus()
    found = current(obj)
    if found is None:
        found = APIServiceCondition(type=AVAILABLE)
        obj.status.conditions = [*(obj.status.conditions or ()), found]
    if found.status != wanted.status:
        found.status, found.last_transition_time = wanted.status, now
    found.reason, found.message = wanted.reason, wanted.message
