"""The status of a ResourceClaim: who uses it, what was allocated, what drivers say about it."""

from __future__ import annotations

from typing import Final

import msgspec

from ...addresses import is_valid_interface_address
from ...core.validation.common import validate_dns1123_label
from ...core.validation.scheduling import validate_node_selector
from ...equality import semantically_equal
from ...field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required, too_long, too_many
from ...gocompat.goform import go_form
from ...meta.validation import IMMUTABLE, validate_conditions, validate_object_meta_update
from ..v1 import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from .resourceclaim import MAX_CONFIG, MAX_REQUESTS, request_names
from .shared import (
    RequestNames,
    same,
    validate_binding_conditions,
    validate_driver_name,
    validate_list,
    validate_opaque,
    validate_pool_name,
    validate_raw_extension,
    validate_set,
    validate_uid,
)

MAX_CONSUMERS: Final = 256
MAX_RESULTS: Final = 32
MAX_CONDITIONS: Final = 8
MAX_DATA_BYTES: Final = 10 * 1024
MAX_IPS: Final = 16
MAX_INTERFACE_NAME: Final = 256
MAX_HARDWARE_ADDRESS: Final = 128
SOURCES: Final = ("FromClaim", "FromClass")

_STATUS = Path("status")

Device = tuple[str, str, str, str]
"""Driver, pool, device and share."""


def validate_resource_claim_status_update(new: ResourceClaim, old: ResourceClaim) -> list[FieldError]:
    """Validate a status update: the allocation is immutable; consumers come and go while it exists."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    status, before = new.status or ResourceClaimStatus(), old.status or ResourceClaimStatus()
    known = request_names(new.spec.devices if new.spec else None)
    consumers = _STATUS.child("reservedFor")
    errors += validate_set(
        status.reserved_for, MAX_CONSUMERS, _validate_consumer, lambda each: each.uid or "", consumers
    )
    errors += _validate_devices(status)
    if status.reserved_for and status.allocation is None:
        errors.append(forbidden(consumers, "may not be specified when `allocated` is not set"))
    deleted = new.metadata is not None and new.metadata.deletion_timestamp is not None
    added = [each for each in status.reserved_for or () if each not in (before.reserved_for or ())]
    if deleted and added and status.allocation is not None:
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.append(forbidden(consumers, detail))
    at = _STATUS.child("allocation")
    if status.allocation is not None and before.allocation is not None:
        if not semantically_equal(status.allocation, before.allocation):
            errors.append(invalid(at, go_form(status.allocation), IMMUTABLE))
    elif status.allocation is not None:
        errors += _validate_allocation(status.allocation, at, known)
    return errors


def device_of(each: DeviceRequestAllocationResult | AllocatedDeviceStatus) -> Device:
    """The identity of an allocated device."""
    return (each.driver or "", each.pool or "", each.device or "", each.share_id or "")


def allocated(status: ResourceClaimStatus | None) -> set[Device]:
    """The devices that a status speaks of."""
    allocation = status.allocation if status else None
    return {device_of(each) for each in (allocation and allocation.devices and allocation.devices.results) or ()}


def _validate_consumer(consumer: ResourceClaimConsumerReference, path: Path) -> list[FieldError]:
    needed = (("resource", consumer.resource), ("name", consumer.name), ("uid", consumer.uid))
    return [required(path.child(name)) for name, value in needed if not value]


def _validate_devices(status: ResourceClaimStatus) -> list[FieldError]:
    path, known = _STATUS.child("devices"), allocated(status)
    errors: list[FieldError] = []
    for index, device in enumerate(status.devices or ()):
        errors += _validate_device(device, path.index(index), known)
    seen: set[Device] = set()
    for index, device in enumerate(status.devices or ()):
        key = device_of(device)
        if key in seen:
            errors.append(duplicate(path.index(index), _shown(key)))
        seen.add(key)
    return errors


def _shown(device: Device) -> msgspec.Raw:
    names = ("Driver", "Pool", "Device", "ShareID")
    return msgspec.Raw(msgspec.json.encode(dict(zip(names, device, strict=True))))


def _validate_device(device: AllocatedDeviceStatus, path: Path, known: set[Device]) -> list[FieldError]:
    errors = validate_driver_name(device.driver, path.child("driver"))
    errors += validate_pool_name(device.pool, path.child("pool"))
    errors += validate_dns1123_label(device.device or "", path.child("device"))
    if device.share_id is not None:
        errors += validate_uid(device.share_id, path.child("shareID"))
    if device_of(device) not in known:
        errors.append(invalid(path, _shown(device_of(device)), "must be an allocated device in the claim"))
    conditions = device.conditions or []
    if len(conditions) > MAX_CONDITIONS:
        errors.append(too_many(path.child("conditions"), len(conditions), MAX_CONDITIONS))
    errors += validate_conditions(conditions, path.child("conditions"))
    if device.data is not None:
        errors += validate_raw_extension(device.data, path.child("data"), MAX_DATA_BYTES)
    return errors + _validate_network(device.network_data, path.child("networkData"))


def _validate_network(network: NetworkDeviceData | None, path: Path) -> list[FieldError]:
    if network is None:
        return []
    errors: list[FieldError] = []
    if len((network.interface_name or "").encode()) > MAX_INTERFACE_NAME:
        errors.append(too_long(path.child("interfaceName"), "", MAX_INTERFACE_NAME))
    if len((network.hardware_address or "").encode()) > MAX_HARDWARE_ADDRESS:
        errors.append(too_long(path.child("hardwareAddress"), "", MAX_HARDWARE_ADDRESS))
    return errors + validate_set(
        network.ips, MAX_IPS, lambda ip, path: is_valid_interface_address(path, ip), same, path.child("ips")
    )


def _validate_allocation(allocation: AllocationResult, path: Path, known: RequestNames) -> list[FieldError]:
    devices, at = allocation.devices or DeviceAllocationResult(), path.child("devices")
    errors = validate_list(
        devices.results, MAX_RESULTS, lambda each, path: _validate_result(each, path, known), at.child("results")
    )
    errors += validate_list(
        devices.config, 2 * MAX_CONFIG, lambda each, path: _validate_config(each, path, known), at.child("config")
    )
    if allocation.node_selector is not None:
        errors += validate_node_selector(allocation.node_selector, path.child("nodeSelector"))
    return errors


def _validate_result(result: DeviceRequestAllocationResult, path: Path, known: RequestNames) -> list[FieldError]:
    errors = known.validate(result.request or "", path.child("request"))
    errors += validate_driver_name(result.driver, path.child("driver"))
    errors += validate_pool_name(result.pool, path.child("pool"))
    errors += validate_dns1123_label(result.device or "", path.child("device"))
    errors += validate_binding_conditions(result.binding_conditions, result.binding_failure_conditions, path)
    if result.share_id is not None:
        errors += validate_uid(result.share_id, path.child("shareID"))
    return errors


def _validate_config(config: DeviceAllocationConfiguration, path: Path, known: RequestNames) -> list[FieldError]:
    errors: list[FieldError] = []
    if not config.source:
        errors.append(required(path.child("source")))
    elif config.source not in SOURCES:
        errors.append(not_supported(path.child("source"), config.source, SOURCES))
    errors += validate_set(config.requests, MAX_REQUESTS, known.validate, same, path.child("requests"))
    return errors + validate_opaque(config.opaque, path.child("opaque"))
