"""Device selectors (`api.resource.expressions`), compiled once and asked once for each device.

A domain that the device says nothing about is an empty map; names without a domain are in that of the driver.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from pybernetes.api.quantity import parse
from pybernetes.api.resource.v1 import Device, DeviceAttribute

if TYPE_CHECKING:
    from pybernetes.api.cel.environment import Program

_MOST = 1024


class SelectorFailed(Exception):
    """The expression cannot be read, or has no value for this device."""


class _Domains(dict[str, dict[str, Any]]):
    """A domain that is not there reads as empty; it still is not `in`."""

    def __missing__(self, key: str) -> dict[str, Any]:
        return {}


class DeviceSelectors:
    """Expressions seen lately, compiled."""

    def __init__(self) -> None:
        self._programs: OrderedDict[str, Program | Exception] = OrderedDict()

    def matches(self, expression: str, driver: str, device: Device) -> bool:
        """Whether the expression holds for the device. Raises `SelectorFailed`."""
        from pybernetes.api.cel.values import CostLimitExceeded, EvaluationError
        from pybernetes.api.resource.expressions import MAX_COST

        program = self._program(expression)
        try:
            value, _ = program.evaluate({"device": _value(driver, device)}, MAX_COST)
        except (EvaluationError, CostLimitExceeded) as error:
            raise SelectorFailed(f"CEL runtime error: {error}") from None
        if not isinstance(value, bool):
            raise SelectorFailed("CEL runtime error: CEL result could not be converted to bool")
        return value

    def _program(self, expression: str) -> Program:
        from pybernetes.api.cel.ast import CompileError
        from pybernetes.api.resource.expressions import compile_selector

        found = self._programs.get(expression)
        if found is None:
            try:
                found = compile_selector(expression)
            except CompileError as error:
                found = error
            while len(self._programs) >= _MOST:
                self._programs.popitem(last=False)
            self._programs[expression] = found
        if isinstance(found, Exception):
            raise SelectorFailed(f"CEL compile error: compilation failed: {found}")
        return found


def _value(driver: str, device: Device) -> dict[str, Any]:
    from pybernetes.api.cel.libraries.quantity import QuantityValue

    attributes, capacity = _Domains(), _Domains()
    for name, attribute in (device.attributes or {}).items():
        domain, short = _split(name, driver)
        attributes.setdefault(domain, {})[short] = _attribute(name, attribute)
    for name, amount in (device.capacity or {}).items():
        domain, short = _split(name, driver)
        capacity.setdefault(domain, {})[short] = QuantityValue(parse(str(amount.value or "0")))
    return {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": bool(device.allow_multiple_allocations),
    }


def _attribute(name: str, attribute: DeviceAttribute) -> Any:
    from pybernetes.api.cel.libraries.semver import parse_semver

    if attribute.int_ is not None:
        return attribute.int_
    if attribute.bool_ is not None:
        return attribute.bool_
    if attribute.string is not None:
        return attribute.string
    if attribute.version is not None:
        return parse_semver(attribute.version)
    raise SelectorFailed(f"CEL runtime error: attribute {name}: unsupported attribute value")


def _split(name: str, driver: str) -> tuple[str, str]:
    domain, slash, short = name.partition("/")
    return (domain, short) if slash else (driver, name)
