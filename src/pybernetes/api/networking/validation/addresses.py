"""Validation of IPAddresses and ServiceCIDRs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...addresses import is_valid_cidr, is_valid_ip, parse_cidr
from ...field import FieldError, Path, invalid, required
from ...gocompat.godiff import in_order
from ...meta.validation import IMMUTABLE, validate_object_meta, validate_object_meta_update
from ...names import is_dns1123_subdomain, is_path_segment_name, name_is_dns_subdomain
from ..v1 import IPAddress, ServiceCIDR

_META: Final = Path("metadata")
_PARENT: Final = Path("spec", "parentRef")
_CIDRS: Final = Path("spec", "cidrs")


# --- IPAddress


def name_is_address(name: str, prefix: bool) -> list[str]:
    """The name is the address, in canonical form."""
    return [error.detail for error in is_valid_ip(None, name)]


def validate_ip_address(obj: IPAddress) -> list[FieldError]:
    """An address belongs to something."""
    errors = validate_object_meta(obj.metadata, False, name_is_address, _META)
    parent = obj.spec.parent_ref if obj.spec else None
    if parent is None:
        return [*errors, required(_PARENT)]
    if parent.group:
        errors += [invalid(_PARENT.child("group"), parent.group, each) for each in is_dns1123_subdomain(parent.group)]
    for name, value in (("resource", parent.resource), ("name", parent.name), ("namespace", parent.namespace)):
        if value:
            errors += [invalid(_PARENT.child(name), value, problem) for problem in is_path_segment_name(value)]
        elif name != "namespace":
            errors.append(required(_PARENT.child(name)))
    return errors


def validate_ip_address_update(new: IPAddress, old: IPAddress) -> list[FieldError]:
    """It never changes hands."""
    errors = validate_ip_address(new) + validate_object_meta_update(new.metadata, old.metadata, _META)
    parent, before = new.spec and new.spec.parent_ref, old.spec and old.spec.parent_ref
    if parent != before:
        value = None
        if parent is not None:
            value = {name.capitalize(): getattr(parent, name) or "" for name in parent.__struct_fields__}
        errors.append(invalid(_PARENT, in_order(value), IMMUTABLE))
    return errors


# --- ServiceCIDR


def validate_service_cidr(obj: ServiceCIDR) -> list[FieldError]:
    """One block for each family, at least one."""
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain, _META)
    return errors + _validate_cidrs((obj.spec and obj.spec.cidrs) or [])


def _validate_cidrs(cidrs: list[str]) -> list[FieldError]:
    if not cidrs:
        return [required(_CIDRS, "at least one CIDR required")]
    if len(cidrs) > 2:
        return [invalid(_CIDRS, {"CIDRs": cidrs}, "may only hold up to 2 values")]
    errors: list[FieldError] = []
    for index, cidr in enumerate(cidrs):
        errors += is_valid_cidr(_CIDRS.index(index), cidr)
    parsed = [parse_cidr(cidr) for cidr in cidrs]
    versions = [each[1].version for each in parsed if each]
    if len(versions) == 2 and versions[0] == versions[1]:
        detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        errors.append(invalid(_CIDRS, cidrs, detail))
    return errors


def validate_service_cidr_update(new: ServiceCIDR, old: ServiceCIDR) -> list[FieldError]:
    """A block of the other family may be added."""
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    cidrs, before = (new.spec and new.spec.cidrs) or [], (old.spec and old.spec.cidrs) or []
    if len(cidrs) == len(before):
        for index, (now, was) in enumerate(zip(cidrs, before, strict=True)):
            if now != was:
                errors.append(invalid(_CIDRS.index(index), now, IMMUTABLE))
    elif len(before) == 1 and len(cidrs) == 2:
        if cidrs[0] != before[0]:
            errors.append(invalid(_CIDRS.index(0), cidrs[0], IMMUTABLE))
        errors += _validate_cidrs(cidrs)
    else:
        errors.append(invalid(_CIDRS, new.spec and new.spec.cidrs, IMMUTABLE))
    return errors


def validate_service_cidr_status_update(new: ServiceCIDR, old: ServiceCIDR) -> list[FieldError]:
    """The status is free."""
    return validate_object_meta_update(new.metadata, old.metadata, _META)


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "IPAddress": validate_ip_address,
    "ServiceCIDR": validate_service_cidr,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "IPAddress": validate_ip_address_update,
    "ServiceCIDR": validate_service_cidr_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "ServiceCIDR": validate_service_cidr_status_update,
}
