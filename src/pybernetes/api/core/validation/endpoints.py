"""Validation of Endpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...addresses import is_valid_ip_for_legacy_field, parse_ip
from ...field import FieldError, Path, invalid, required
from ...meta.validation import validate_object_meta, validate_object_meta_update
from ...names import is_dns1123_label, is_dns1123_subdomain, is_port_number, name_is_dns_subdomain
from ..v1.service import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from .ports import validate_app_protocol, validate_protocol

_META: Final = Path("metadata")


def validate_endpoints(obj: Endpoints) -> list[FieldError]:
    """Validate new Endpoints."""
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain, _META)
    return errors + _validate_subsets(obj.subsets or [])


def validate_endpoints_update(new: Endpoints, old: Endpoints) -> list[FieldError]:
    """Subsets that stay as they were have once been fine."""
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    errors += validate_object_meta(new.metadata, True, name_is_dns_subdomain, _META)
    if (new.subsets or []) != (old.subsets or []):
        errors += _validate_subsets(new.subsets or [])
    return errors


def _validate_subsets(subsets: list[EndpointSubset]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, subset in enumerate(subsets):
        path = Path("subsets").index(index)
        if not subset.addresses and not subset.not_ready_addresses:
            errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for name, addresses in (("addresses", subset.addresses), ("notReadyAddresses", subset.not_ready_addresses)):
            for position, address in enumerate(addresses or ()):
                errors += _validate_endpoint_address(address, path.child(name).index(position))
        for position, port in enumerate(subset.ports or ()):
            errors += _validate_endpoint_port(port, len(subset.ports or ()) > 1, path.child("ports").index(position))
    return errors


def _validate_endpoint_address(address: EndpointAddress, path: Path) -> list[FieldError]:
    ip = address.ip or ""
    errors = is_valid_ip_for_legacy_field(path.child("ip"), ip)
    if address.hostname:
        at = path.child("hostname")
        errors += [invalid(at, address.hostname, problem) for problem in is_dns1123_label(address.hostname)]
    if address.node_name is not None:
        at = path.child("nodeName")
        errors += [invalid(at, address.node_name, problem) for problem in is_dns1123_subdomain(address.node_name)]
    return errors + validate_endpoint_ip(ip, path.child("ip"))


def _validate_endpoint_port(port: EndpointPort, name_required: bool, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if port.name:
        errors += [invalid(path.child("name"), port.name, problem) for problem in is_dns1123_label(port.name)]
    elif name_required:
        errors.append(required(path.child("name")))
    number = port.port or 0
    errors += [invalid(path.child("port"), number, problem) for problem in is_port_number(number)]
    validate_protocol(port.protocol, path, errors)
    validate_app_protocol(port.app_protocol, path, errors)
    return errors


def validate_endpoint_ip(value: str, path: Path) -> list[FieldError]:
    """An address that can be a destination in the cluster: no loopback, no link-local."""
    ip = parse_ip(value)
    if ip is None:
        return [invalid(path, value, "must be a valid IP address")]
    errors: list[FieldError] = []
    if ip.is_unspecified:
        errors.append(invalid(path, value, f"may not be unspecified ({value})"))
    if ip.is_loopback:
        errors.append(invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if ip.is_link_local:
        errors.append(invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if _link_local_multicast(ip.packed):
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(invalid(path, value, detail))
    return errors


def _link_local_multicast(packed: bytes) -> bool:
    if len(packed) == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 2


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"Endpoints": validate_endpoints}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"Endpoints": validate_endpoints_update}
