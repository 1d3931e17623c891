"""Devices that several claims may share: how much of a device's capacity a request takes."""

from __future__ import annotations

from collections.abc import Mapping

from pybernetes.api.quantity import BINARY_SI, Quantity, parse
from pybernetes.api.resource.v1 import CapacityRequestPolicy, Device, DeviceCapacity

Amounts = dict[str, Quantity]


def consumed(device: Device, requests: Mapping[str, object] | None) -> Amounts | None:
    """The amount a request consumes of each capacity of the device; None when the device cannot provide it.

    A capacity that is not asked for is taken by its default, or whole. What is asked for is rounded up to what the
    device's policy allows.
    """
    capacities = device.capacity or {}
    if any(name not in capacities for name in requests or ()):
        return None
    found: Amounts = {}
    for name, capacity in capacities.items():
        wanted = (requests or {}).get(name)
        taken = _taken(None if wanted is None else parse(str(wanted)), capacity)
        if _violates(taken, capacity.request_policy):
            return None
        found[name] = taken
    return found


def fits(device: Device, taken: Amounts, *before: Mapping[str, Quantity]) -> bool:
    """Whether the device has so much beside what was taken before."""
    for name, capacity in (device.capacity or {}).items():
        total = taken[name]
        for each in before:
            if name in each:
                total = total + each[name]
        if total > parse(str(capacity.value or "0")):
            return False
    return True


def _taken(wanted: Quantity | None, capacity: DeviceCapacity) -> Quantity:
    policy = capacity.request_policy
    if wanted is None:
        default = policy.default if policy is not None else None
        return parse(str(capacity.value or "0")) if default is None else parse(str(default))
    if policy is None:
        return wanted
    if policy.valid_range is not None and policy.valid_range.min is not None:
        low = parse(str(policy.valid_range.min))
        if wanted < low:
            return low
        if policy.valid_range.step is None:
            return wanted
        step = parse(str(policy.valid_range.step)).value()
        steps = -(-(wanted.value() - low.value()) // step)
        return Quantity(low.value() + step * steps, 0, BINARY_SI)
    for value in policy.valid_values or ():
        if wanted <= parse(str(value)):
            return parse(str(value))
    return wanted


def _violates(taken: Quantity, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and taken == parse(str(policy.default))):
        return False
    allowed = policy.valid_range
    if allowed is not None:
        if allowed.max is not None and taken > parse(str(allowed.max)):
            return True
        if allowed.step is not None:
            low = parse(str(allowed.min or "0")).value()
            return (taken.value() - low) % parse(str(allowed.step)).value() != 0
        return False
    if policy.valid_values:
        return all(taken != parse(str(each)) for each in policy.valid_values)
    return False
