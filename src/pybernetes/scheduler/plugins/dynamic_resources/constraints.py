"""Constraints of a claim between its devices: attributes that must match or differ."""

from __future__ import annotations

from typing import Any

from pybernetes.api.resource.v1 import DeviceAttribute, DeviceConstraint

from .pools import PoolDevice


class Constraint:
    """Devices are added one by one and taken back in reverse; `add` says whether the constraint still holds."""

    def __init__(self, given: DeviceConstraint) -> None:
        self._requests = frozenset(given.requests or ())
        self._distinct = given.match_attribute is None
        self._attribute = (given.distinct_attribute if self._distinct else given.match_attribute) or ""
        self._values: list[tuple[str, Any]] = []

    def add(self, request: str, subrequest: str, device: PoolDevice) -> bool:
        """Whether the device may be one of them; if so it is."""
        if not self._concerns(request, subrequest):
            return True
        value = attribute_value(device, self._attribute)
        if value is None:
            return False
        if self._distinct:
            if value in self._values:
                return False
        elif self._values and value != self._values[0]:
            return False
        self._values.append(value)
        return True

    def remove(self, request: str, subrequest: str) -> None:
        """Take back the device that was added last."""
        if self._concerns(request, subrequest):
            self._values.pop()

    def _concerns(self, request: str, subrequest: str) -> bool:
        if not self._requests:
            return True
        return request in self._requests or (bool(subrequest) and f"{request}/{subrequest}" in self._requests)


def attribute_value(device: PoolDevice, name: str) -> tuple[str, Any] | None:
    """The type and value of an attribute; its domain may be left out by devices of the driver of that name."""
    attributes = device.device.attributes or {}
    found = attributes.get(name)
    domain, slash, short = name.partition("/")
    if found is None and slash and domain == device.id.driver:
        found = attributes.get(short)
    return None if found is None else _typed(found)


def _typed(attribute: DeviceAttribute) -> tuple[str, Any] | None:
    for kind, value in (
        ("string", attribute.string),
        ("int", attribute.int_),
        ("bool", attribute.bool_),
        ("version", attribute.version),
    ):
        if value is not None:
            return kind, value
    return None
