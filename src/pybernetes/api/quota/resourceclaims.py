"""Claims of devices against a quota: their number, and devices by device class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..quantity import Quantity
from ..resource.v1 import DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from .evaluator import Evaluator, Operation
from .lists import ONE, Resources, add

CLASS_SUFFIX: Final = ".deviceclass.resource.k8s.io/devices"
_COUNT: Final = "count/resourceclaims.resource.k8s.io"
_ALL: Final = 32
"""How many devices a claim can get at most; who asks for all is counted with as many."""


class ResourceClaimEvaluator(Evaluator):
    """ResourceClaims."""

    group, plural = "resource.k8s.io", "resourceclaims"

    def matching_resources(self, names: Iterable[str]) -> list[str]:
        """The number of claims, and devices by class."""
        return sorted({each for each in names if each == _COUNT or each.endswith(CLASS_SUFFIX)})

    def usage(self, obj: ResourceClaim, now: float) -> Resources:
        """Of alternatives, the one that takes most of each class."""
        result: Resources = {_COUNT: ONE}
        devices = obj.spec.devices if obj.spec else None
        for request in (devices.requests if devices else None) or ():
            wanted: Resources = {}
            for each in request.first_available or ((request.exactly,) if request.exactly else ()):
                name = f"{each.device_class_name or ''}{CLASS_SUFFIX}"
                wanted[name] = max(wanted.get(name, Quantity(0)), Quantity(_devices(each)))
            result = add(result, wanted)
        return result

    def handles(self, operation: Operation, subresource: str, old: Any, new: Any) -> bool:
        """New and changed claims."""
        return not subresource and operation in ("CREATE", "UPDATE")


def _devices(request: ExactDeviceRequest | DeviceSubRequest) -> int:
    if request.allocation_mode == "ExactCount":
        return request.count or 0
    return _ALL if request.allocation_mode == "All" else 0
