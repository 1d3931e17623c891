"""ResourceSlices: where a pool's devices are."""

from __future__ import annotations

from typing import Final

from ...core.v1.affinity import NodeSelector
from ...core.validation.common import validate_dns1123_label
from ...core.validation.scheduling import validate_node_selector
from ...field import FieldError, Path, invalid, required
from ...gocompat.goform import go_values
from ...meta.validation import IMMUTABLE, validate_object_meta, validate_object_meta_update
from ...names import name_is_dns_subdomain
from ..v1 import CounterSet, Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from .device import validate_counters, validate_device
from .shared import validate_driver_name, validate_pool_name, validate_set

MAX_DEVICES: Final = 128
MAX_ADVANCED_DEVICES: Final = 64  # with taints, counters or lists of values, which cost more
MAX_COUNTER_SETS: Final = 8

_SPEC = Path("spec")
_ONE: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


def validate_resource_slice(obj: ResourceSlice) -> list[FieldError]:
    """Validate a new ResourceSlice."""
    return validate_object_meta(obj.metadata, False, name_is_dns_subdomain) + _validate_spec(obj, None)


def validate_resource_slice_update(new: ResourceSlice, old: ResourceSlice) -> list[FieldError]:
    """Driver, pool and node stay; devices come and go."""
    return validate_object_meta_update(new.metadata, old.metadata) + _validate_spec(new, old.spec)


def _validate_spec(obj: ResourceSlice, before: ResourceSliceSpec | None) -> list[FieldError]:
    spec = obj.spec or ResourceSliceSpec()
    pool = spec.pool or ResourcePool()
    errors = validate_driver_name(spec.driver, _SPEC.child("driver"))
    errors += _validate_pool(pool, _SPEC.child("pool"))
    if before is not None:
        old_name = (before.pool and before.pool.name) or ""
        if (pool.name or "") != old_name:
            errors.append(invalid(_SPEC.child("pool", "name"), pool.name or "", IMMUTABLE))
        if (spec.driver or "") != (before.driver or ""):
            errors.append(invalid(_SPEC.child("driver"), spec.driver or "", IMMUTABLE))
        if spec.node_name != before.node_name:
            errors.append(invalid(_SPEC.child("nodeName"), spec.node_name, IMMUTABLE))
    errors += _validate_place(spec)
    if spec.shared_counters is not None and spec.devices is not None:
        errors.append(invalid(_SPEC, "", "only one of `sharedCounters` or `devices` is allowed"))
    devices = spec.devices or []
    previous = {each.name: each for each in reversed((before and before.devices) or [])}
    errors += validate_set(
        devices,
        MAX_ADVANCED_DEVICES if any(map(_advanced, devices)) else MAX_DEVICES,
        lambda device, path: validate_device(
            device, previous.get(device.name), path, bool(spec.per_device_node_selection)
        ),
        lambda device: device.name or "",
        _SPEC.child("devices"),
    )
    return errors + validate_set(
        spec.shared_counters,
        MAX_COUNTER_SETS,
        _validate_counter_set,
        lambda each: each.name or "",
        _SPEC.child("sharedCounters"),
    )


def _validate_pool(pool: ResourcePool, path: Path) -> list[FieldError]:
    errors = validate_pool_name(pool.name, path.child("name"))
    count, generation = pool.resource_slice_count or 0, pool.generation or 0
    if count <= 0:
        errors.append(invalid(path.child("resourceSliceCount"), count, "must be greater than zero"))
    if generation < 0:
        errors.append(invalid(path.child("generation"), generation, "must be greater than or equal to zero"))
    return errors


def _validate_place(spec: ResourceSliceSpec) -> list[FieldError]:
    """On one node, on some, on all, or each device says it."""
    errors: list[FieldError] = []
    said: list[str] = []
    name = spec.node_name
    if name:
        said.append("`nodeName`")
        errors += [invalid(_SPEC.child("nodeName"), name, each) for each in name_is_dns_subdomain(name, False)]
    elif name is not None:
        errors.append(invalid(_SPEC.child("nodeName"), name, "must be either unset or set to a non-empty string"))
    if spec.node_selector is not None:
        said.append("`nodeSelector`")
        errors += _validate_selector(spec.node_selector, _SPEC.child("nodeSelector"))
    for field, value in (("allNodes", spec.all_nodes), ("perDeviceNodeSelection", spec.per_device_node_selection)):
        if value:
            said.append(f"`{field}`")
        elif value is not None:
            errors.append(invalid(_SPEC.child(field), value, "must be either unset or set to true"))
    if not said:
        errors.append(required(_SPEC, _ONE))
    elif len(said) > 1:
        errors.append(invalid(_SPEC, f"{{{', '.join(said)}}}", f"{_ONE}, but multiple fields are set"))
    return errors


def _validate_selector(selector: NodeSelector, path: Path) -> list[FieldError]:
    errors = validate_node_selector(selector, path)
    terms = selector.node_selector_terms
    if terms is None or len(terms) != 1:
        detail = "must have exactly one node selector term"
        errors.append(invalid(path.child("nodeSelectorTerms"), go_values(terms), detail))
    return errors


def _advanced(device: Device) -> bool:
    if device.taints or device.consumes_counters:
        return True
    return any(
        each.bools is not None or each.ints is not None or each.strings is not None or each.versions is not None
        for each in (device.attributes or {}).values()
    )


def _validate_counter_set(counters: CounterSet, path: Path) -> list[FieldError]:
    if counters.name:
        errors = validate_dns1123_label(counters.name, path.child("name"))
    else:
        errors = [required(path.child("name"))]
    return errors + validate_counters(counters.counters, path.child("counters"))
