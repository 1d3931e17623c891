"""How claims, classes and slices of devices are created, updated and deleted.

A claim may see devices that others use (`adminAccess`) only in a namespace whose label says so. Parts of its status are
for those who do the work they tell of (`authz.claim_status`).
"""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.equality import semantically_equal
from pybernetes.api.field import FieldError, Path, forbidden, internal
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.resource.v1 import (
    DeviceRequest,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceSlice,
)
from pybernetes.api.resource.validation.claimstatus import allocated, device_of
from pybernetes.apiserver.authz.claim_status import check_claim_status
from pybernetes.apiserver.registry.strategy import Context, Strategy

from .metadata import keep_metadata

ADMIN_ACCESS_LABEL: Final = "resource.kubernetes.io/admin-access"


class DeviceClassStrategy(Strategy):
    """DeviceClasses."""

    has_generation = True
    returns_deleted = True

    def changed(self, new: Any, old: Any) -> bool:
        return not semantically_equal(new.spec, old.spec)


class ResourceSliceStrategy(Strategy):
    """ResourceSlices."""

    has_generation = True
    returns_deleted = True

    def changed(self, new: Any, old: Any) -> bool:
        return not semantically_equal(new.spec, old.spec)

    def prepare_for_create(self, obj: ResourceSlice, context: Context) -> None:
        super().prepare_for_create(obj, context)
        _drop_disabled(obj, None)

    def prepare_for_update(self, new: ResourceSlice, old: ResourceSlice, context: Context) -> None:
        super().prepare_for_update(new, old, context)
        _drop_disabled(new, old)

    def warnings_on_create(self, obj: ResourceSlice, context: Context) -> list[str]:
        driver = (obj.spec and obj.spec.driver) or ""
        if driver == driver.lower():
            return []
        return [f"spec.driver: driver names should be lowercase; {quote(driver)} contains uppercase characters"]


class ResourceClaimStrategy(Strategy):
    """ResourceClaims."""

    returns_deleted = True
    guards = True

    async def guard(self, new: ResourceClaim, old: ResourceClaim | None, context: Context) -> None:
        """Find out which parts of the status the user may not write."""
        if old is not None and context.subresource == "status":
            _forget_deallocated(new, old)
            context.refused = await check_claim_status(new, old, context)

    def prepare_for_create(self, obj: ResourceClaim, context: Context) -> None:
        obj.status = ResourceClaimStatus()

    def prepare_for_status_update(self, new: ResourceClaim, old: ResourceClaim, context: Context) -> None:
        new.spec = old.spec
        keep_metadata(new, old)
        _forget_deallocated(new, old)

    def validate(self, obj: ResourceClaim, context: Context) -> list[FieldError]:
        requests = (obj.spec and obj.spec.devices and obj.spec.devices.requests) or []
        return _check_admin_access(requests, context) + super().validate(obj, context)

    def validate_status_update(self, new: Any, old: Any, context: Context) -> list[FieldError]:
        asked, granted = _admin_result(new.status), _admin_result(old.status)
        errors = _check_label(asked, context) if asked is not None and granted is None else []
        return errors + context.refused + super().validate_status_update(new, old, context)


class ResourceClaimTemplateStrategy(Strategy):
    """ResourceClaimTemplates."""

    returns_deleted = True

    def validate(self, obj: ResourceClaimTemplate, context: Context) -> list[FieldError]:
        spec = obj.spec.spec if obj.spec else None
        requests = (spec and spec.devices and spec.devices.requests) or []
        return _check_admin_access(requests, context) + super().validate(obj, context)


def _check_admin_access(requests: list[DeviceRequest], context: Context) -> list[FieldError]:
    for index, request in enumerate(requests):
        if request.exactly is not None and request.exactly.admin_access:
            return _check_label(Path("spec", "devices", "requests").index(index).child("adminAccess"), context)
    return []


def _admin_result(status: ResourceClaimStatus | None) -> Path | None:
    allocation = status.allocation if status else None
    for index, result in enumerate((allocation and allocation.devices and allocation.devices.results) or ()):
        if result.admin_access:
            return Path("status", "allocation", "devices", "results").index(index).child("adminAccess")
    return None


def _check_label(path: Path, context: Context) -> list[FieldError]:
    store = context.registry.store("", "v1", "namespaces")
    item = store.peek("", context.namespace)
    if item is None:
        why = f"could not retrieve namespace to verify admin access: namespaces {quote(context.namespace)} not found"
        return [internal(path, why)]
    labels = store.decode(item).metadata.labels or {}
    if labels.get(ADMIN_ACCESS_LABEL) == "true":
        return []
    detail = f"admin access to devices requires the `{ADMIN_ACCESS_LABEL}: true` label on the containing namespace"
    return [forbidden(path, detail)]


def _forget_deallocated(new: ResourceClaim, old: ResourceClaim) -> None:
    """Remove the drivers' status of devices that are no longer allocated."""
    status = new.status
    if status is None or not status.devices:
        return
    gone = allocated(old.status) - allocated(status)
    status.devices = [each for each in status.devices if device_of(each) not in gone] or None


def _drop_disabled(new: ResourceSlice, old: ResourceSlice | None) -> None:
    """Features that are off: lists in attributes, mappings to what nodes can allocate. Who has them keeps them."""
    before = (old.spec.devices if old and old.spec else None) or []
    devices = (new.spec and new.spec.devices) or []
    if not any(device.node_allocatable_resource_mappings for device in before):
        for device in devices:
            device.node_allocatable_resource_mappings = None
    if any(
        value is not None
        for device in before
        for each in (device.attributes or {}).values()
        for value in (each.bools, each.ints, each.strings, each.versions)
    ):
        return
    for device in devices:
        for each in (device.attributes or {}).values():
            each.bools = each.ints = each.strings = each.versions = None


STRATEGIES: Final[dict[str, type[Strategy]]] = {
    "deviceclasses": DeviceClassStrategy,
    "resourceclaims": ResourceClaimStrategy,
    "resourceclaimtemplates": ResourceClaimTemplateStrategy,
    "resourceslices": ResourceSliceStrategy,
}
