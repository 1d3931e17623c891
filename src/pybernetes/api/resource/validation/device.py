"""One device of a ResourceSlice: its attributes, capacities, counters and taints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from ...core.resourcenames import is_native
from ...core.validation.common import validate_dns1123_label
from ...core.validation.scheduling import validate_node_selector
from ...equality import semantically_equal
from ...field import FieldError, Path, forbidden, invalid, not_found, not_supported, required, too_long, too_many
from ...meta.validation import validate_label_name
from ...names import name_is_dns_subdomain
from ...quantity import Quantity, parse
from ..v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    NodeAllocatableResourceMapping,
)
from .shared import (
    Check,
    validate_binding_conditions,
    validate_label_value,
    validate_list,
    validate_qualified_name,
    validate_set,
)

MAX_ATTRIBUTES_AND_CAPACITIES: Final = 32
MAX_ATTRIBUTE_VALUES: Final = 48
MAX_ATTRIBUTE_VALUE: Final = 64
MAX_KEY: Final = 63 + 1 + 32
MAX_LABEL: Final = 63
MAX_TAINTS: Final = 16
MAX_COUNTER_CONSUMPTIONS: Final = 2
MAX_COUNTERS: Final = 32
MAX_DISCRETE_OPTIONS: Final = 10
TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")

_NUMBER = r"(0|[1-9]\d*)"
_PRERELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_is_semver = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
).fullmatch

T = TypeVar("T")


def validate_device(device: Device, old: Device | None, path: Path, chooses_nodes: bool) -> list[FieldError]:
    """Validate a device; `chooses_nodes` if each device of the slice says where it is."""
    errors = validate_dns1123_label(device.name or "", path.child("name"))
    attributes, capacity = device.attributes or {}, device.capacity or {}
    total = len(attributes) + len(capacity)
    if total > MAX_ATTRIBUTES_AND_CAPACITIES:
        detail = f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES_AND_CAPACITIES}"
        errors.append(invalid(path, total, detail))
    values = sum(map(_count, attributes.values()))
    if values > MAX_ATTRIBUTE_VALUES:
        detail = f"the total number of attribute values must not exceed {MAX_ATTRIBUTE_VALUES}"
        errors.append(invalid(path, values, detail))
    errors += _validate_map(
        attributes, None, MAX_KEY, validate_qualified_name, _validate_attribute, path.child("attributes")
    )
    check = _validate_shared_capacity if device.allow_multiple_allocations else _validate_capacity
    errors += _validate_map(capacity, None, MAX_KEY, validate_qualified_name, check, path.child("capacity"))
    if old is None or not semantically_equal(old.taints, device.taints):
        errors += validate_list(device.taints, MAX_TAINTS, _validate_taint, path.child("taints"))
    errors += validate_set(
        device.consumes_counters,
        MAX_COUNTER_CONSUMPTIONS,
        _validate_consumption,
        lambda each: each.counter_set or "",
        path.child("consumesCounters"),
    )
    errors += _validate_place(device, path) if chooses_nodes else _validate_no_place(device, path)
    errors += validate_binding_conditions(device.binding_conditions, device.binding_failure_conditions, path)
    mappings = device.node_allocatable_resource_mappings or {}
    for name in sorted(mappings):
        at = path.child("nodeAllocatableResourceMappings").key(name)
        errors += _validate_mapping(name, mappings[name], capacity, at)
    return errors


def validate_counters(counters: Mapping[str, Counter] | None, path: Path) -> list[FieldError]:
    """At least one, and not too many; any amount is fine."""
    if not counters:
        return [required(path)]
    return _validate_map(counters, MAX_COUNTERS, MAX_LABEL, validate_dns1123_label, _anything, path)


def _anything(value: Any, path: Path) -> list[FieldError]:
    return []


def _validate_map(
    values: Mapping[str, T],
    limit: int | None,
    shown: int,
    check_key: Callable[[str, Path], list[FieldError]],
    check: Check[T],
    path: Path,
) -> list[FieldError]:
    if limit is not None and len(values) > limit:
        return [too_many(path, len(values), limit)]
    errors: list[FieldError] = []
    for key in sorted(values):
        errors += check_key(key, path)
        errors += check(values[key], path.key(_shortened(key, shown)))
    return errors


def _shortened(key: str, length: int) -> str:
    """The beginning and the end of a key that is too long to be shown."""
    if len(key) <= length:
        return key
    rest = length - 3
    return f"{key[: (rest + 1) // 2]}...{key[len(key) - rest // 2 :]}"


def _count(attribute: DeviceAttribute) -> int:
    lists = (attribute.bools, attribute.ints, attribute.strings, attribute.versions)
    return sum(len(each) for each in lists if each) or 1


def _validate_attribute(attribute: DeviceAttribute, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if attribute.string is not None:
        errors += _validate_string(attribute.string, path.child("string"))
    if attribute.version is not None:
        errors += _validate_version(attribute.version, path.child("version"))
    lists: tuple[tuple[str, list[Any] | None, Check[Any]], ...] = (
        ("bools", attribute.bools, _anything),
        ("ints", attribute.ints, _anything),
        ("strings", attribute.strings, _validate_string),
        ("versions", attribute.versions, _validate_version),
    )
    for name, values, check in lists:
        if values is not None and not values:
            errors.append(invalid(path.child(name), values, "must not be empty if specified"))
        for index, value in enumerate(values or ()):
            errors += check(value, path.child(name).index(index))
    said = sum(getattr(attribute, name) is not None for name in attribute.__struct_fields__)
    if said != 1:
        shown = _shown(attribute) if said else ""
        errors.append(invalid(path, shown, "exactly one value must be specified"))
    return errors


def _shown(attribute: DeviceAttribute) -> msgspec.Raw:
    """All fields, by the names they have in Go: `IntValue`, `IntValues`."""
    form = {
        f"{wire[0].upper()}{wire[1:].removesuffix('s')}Value{'s' * wire.endswith('s')}": getattr(attribute, name)
        for name, wire in zip(attribute.__struct_fields__, attribute.__struct_encode_fields__, strict=True)
    }
    return msgspec.Raw(msgspec.json.encode(form))


def _validate_string(value: str, path: Path) -> list[FieldError]:
    return [too_long(path, "", MAX_ATTRIBUTE_VALUE)] if len(value.encode()) > MAX_ATTRIBUTE_VALUE else []


def _validate_version(value: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not _is_semver(value):
        errors.append(invalid(path, value, "must be a string compatible with semver.org spec 2.0.0"))
    return errors + _validate_string(value, path)


def _validate_capacity(capacity: DeviceCapacity, path: Path) -> list[FieldError]:
    if capacity.request_policy is None:
        return []
    return [forbidden(path.child("requestPolicy"), "allowMultipleAllocations must be true")]


def _validate_shared_capacity(capacity: DeviceCapacity, path: Path) -> list[FieldError]:
    """How much of it a claim may ask for: one of some values, or any in a range."""
    policy, at = capacity.request_policy, path.child("requestPolicy")
    if policy is None:
        return []
    if policy.valid_values and policy.valid_range is not None:
        one = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return [forbidden(at, one)]
    limit = _quantity(capacity.value)
    if policy.valid_values:
        if policy.default is None:
            return [required(at.child("default"), "required when validValues is defined")]
        return _validate_options(policy, limit, at.child("validValues"))
    if policy.valid_range is not None:
        if policy.default is None:
            return [required(at.child("default"), "required when validRange is defined")]
        return _validate_range(policy.valid_range, _quantity(policy.default), limit, at.child("validRange"))
    return []


def _quantity(value: Any) -> Quantity:
    return parse(str(value)) if value is not None else parse("0")


def _validate_options(policy: CapacityRequestPolicy, limit: Quantity, path: Path) -> list[FieldError]:
    options = [_quantity(each) for each in policy.valid_values or ()]
    default = _quantity(policy.default)
    errors: list[FieldError] = []
    for index in range(1, len(options)):
        if options[index - 1].cmp(options[index]) > 0:
            detail = "values must be sorted in ascending order"
            errors.append(invalid(path.index(index), str(options[index]), detail))

    def check(option: Quantity, path: Path) -> list[FieldError]:
        if option.cmp(limit) <= 0:
            return []
        return [invalid(path, str(option), f"option is larger than capacity value: {limit}")]

    errors += validate_set(options, MAX_DISCRETE_OPTIONS, check, lambda option: str(option.value()), path)
    known = len(options) <= MAX_DISCRETE_OPTIONS and any(option.cmp(default) == 0 for option in options)
    if not known:
        detail = "default value is not valid according to the requestPolicy"
        errors.append(invalid(path, str(default), detail))
    return errors


def _validate_range(
    bounds: CapacityRequestPolicyRange, default: Quantity, limit: Quantity, path: Path
) -> list[FieldError]:
    if bounds.min is None:
        return [required(path.child("min"), "required when validRange is defined")]
    low = _quantity(bounds.min)
    high = _quantity(bounds.max) if bounds.max is not None else None
    errors: list[FieldError] = []
    if low.cmp(limit) > 0:
        errors.append(invalid(path.child("min"), str(low), f"min is larger than capacity value: {limit}"))
    if default.cmp(low) < 0:
        errors.append(invalid(path.child("min"), str(default), f"default is less than min: {low}"))
    if high is not None:
        at = path.child("max")
        if low.cmp(high) > 0:
            errors.append(invalid(at, str(low), f"min is larger than max: {high}"))
        if high.cmp(limit) > 0:
            errors.append(invalid(at, str(high), f"max is larger than capacity value: {limit}"))
        if default.cmp(high) > 0:
            errors.append(invalid(at, str(default), f"default is more than max: {high}"))
    if bounds.step is not None:
        step, at = _quantity(bounds.step), path.child("step")
        if (low + step).cmp(limit) > 0:
            detail = f"one step {low + step} is larger than capacity value: {limit}"
            errors.append(invalid(at, str(step), detail))
        for value in (default, high):
            if value is not None and step.value() and (value.value() - low.value()) % step.value():
                detail = f"value is not a multiple of a given step ({step}) from ({low})"
                errors.append(invalid(at, str(value), detail))
    return errors


def _validate_taint(taint: DeviceTaint, path: Path) -> list[FieldError]:
    errors = validate_label_name(taint.key, path.child("key"))
    if taint.value:
        errors += validate_label_value(taint.value, path.child("value"))
    if not taint.effect:
        errors.append(required(path.child("effect")))
    elif taint.effect not in TAINT_EFFECTS:
        errors.append(not_supported(path.child("effect"), taint.effect, TAINT_EFFECTS))
    return errors


def _validate_consumption(consumption: DeviceCounterConsumption, path: Path) -> list[FieldError]:
    if consumption.counter_set:
        errors = validate_dns1123_label(consumption.counter_set, path.child("counterSet"))
    else:
        errors = [required(path.child("counterSet"))]
    return errors + validate_counters(consumption.counters, path.child("counters"))


def _validate_place(device: Device, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    said: list[str] = []
    name = device.node_name
    if name:
        said.append("`nodeName`")
        errors += [invalid(path.child("nodeName"), name, each) for each in name_is_dns_subdomain(name, False)]
    elif name is not None:
        errors.append(invalid(path.child("nodeName"), name, "must not be empty"))
    if device.node_selector is not None:
        said.append("`nodeSelector`")
        errors += validate_node_selector(device.node_selector, path.child("nodeSelector"))
    if device.all_nodes:
        said.append("`allNodes`")
    elif device.all_nodes is not None:
        errors.append(invalid(path.child("allNodes"), False, "must be either unset or set to true"))
    one = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required "
        "when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    )
    if not said:
        errors.append(required(path, one))
    elif len(said) > 1:
        errors.append(invalid(path, f"{{{', '.join(said)}}}", one))
    return errors


def _validate_no_place(device: Device, path: Path) -> list[FieldError]:
    if device.node_name is None and device.node_selector is None and device.all_nodes is None:
        return []
    detail = (
        "`nodeName`, `nodeSelector` and `allNodes` can only be set "
        "if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    )
    return [invalid(path, None, detail)]


def _validate_mapping(
    name: str, mapping: NodeAllocatableResourceMapping, capacity: Mapping[str, DeviceCapacity], path: Path
) -> list[FieldError]:
    errors: list[FieldError] = []
    if not is_native(name):
        errors.append(invalid(path, name, "must be a node allocatable resource name"))
    multiplier, key = mapping.allocation_multiplier, mapping.capacity_key
    if multiplier is None and key is None:
        detail = "at least one of allocationMultiplier or capacityKey must be set"
        errors.append(invalid(path, "", detail))
    if multiplier is not None and _quantity(multiplier).sign() <= 0:
        errors.append(invalid(path.child("allocationMultiplier"), str(_quantity(multiplier)), "must be positive"))
    if key == "":
        errors.append(invalid(path.child("capacityKey"), "", "capacityKey must not be an empty string"))
    elif key is not None and key not in capacity:
        errors.append(not_found(path.child("capacityKey"), key))
    return errors
