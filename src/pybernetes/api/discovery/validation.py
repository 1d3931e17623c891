"""Validation of EndpointSlices."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from ..addresses import is_valid_ip, is_valid_ip_for_legacy_field, parse_ip
from ..core.validation.common import dns1123_subdomain
from ..core.validation.endpoints import validate_endpoint_ip
from ..core.validation.ports import validate_app_protocol
from ..equality import semantically_equal
from ..field import FieldError, Path, duplicate, internal, invalid, not_supported, repeated, required, too_many
from ..meta.validation import validate_immutable, validate_labels, validate_object_meta
from ..names import is_dns1123_label, is_dns1123_subdomain, is_label_value, name_is_dns_subdomain
from .v1 import Endpoint, EndpointHints, EndpointPort, EndpointSlice

ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
MAX_ENDPOINTS: Final = 1000
MAX_PORTS: Final = 20_000
MAX_ADDRESSES: Final = 100
MAX_TOPOLOGY: Final = 16
MAX_HINTS: Final = 8
ZONE: Final = "topology.kubernetes.io/zone"

_META: Final = Path("metadata")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def validate_endpoint_slice(obj: EndpointSlice) -> list[FieldError]:
    """Validate a new slice."""
    return _validate(obj, None)


def validate_endpoint_slice_update(new: EndpointSlice, old: EndpointSlice) -> list[FieldError]:
    """The type of the addresses stays."""
    errors = _validate(new, old)
    return errors + validate_immutable(new.address_type or "", old.address_type or "", Path("addressType"))


def _validate(obj: EndpointSlice, old: EndpointSlice | None) -> list[FieldError]:
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain, _META)
    if not obj.address_type:
        errors.append(required("addressType"))
    elif obj.address_type not in ADDRESS_TYPES:
        errors.append(not_supported("addressType", obj.address_type, ADDRESS_TYPES))
    errors += _validate_ports(obj.ports or [], Path("ports"))
    wrong = _validate_endpoints(obj.endpoints or [], obj.address_type or "", Path("endpoints"))
    if wrong and not (old is not None and semantically_equal(obj.endpoints, old.endpoints)):
        errors += wrong  # endpoints that stay as they were have once been fine
    return errors


def _validate_ports(ports: list[EndpointPort], path: Path) -> list[FieldError]:
    if len(ports) > MAX_PORTS:
        return [too_many(path, len(ports), MAX_PORTS)]
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        at = path.index(index)
        name = port.name or ""
        if name:
            errors += [invalid(at.child("name"), name, problem) for problem in is_dns1123_label(name)]
        if name in names:
            errors.append(duplicate(at.child("name"), name))
        names.add(name)
        if port.protocol is None:
            errors.append(required(at.child("protocol")))
        elif port.protocol not in _PROTOCOLS:
            errors.append(not_supported(at.child("protocol"), port.protocol, _PROTOCOLS))
        validate_app_protocol(port.app_protocol, at, errors)
    return errors


def _validate_endpoints(endpoints: list[Endpoint], kind: str, path: Path) -> list[FieldError]:
    if len(endpoints) > MAX_ENDPOINTS:
        return [too_many(path, len(endpoints), MAX_ENDPOINTS)]
    errors: list[FieldError] = []
    for index, endpoint in enumerate(endpoints):
        at = path.index(index)
        errors += _validate_addresses(endpoint.addresses or [], kind, at.child("addresses"))
        if endpoint.node_name is not None:
            where, name = at.child("nodeName"), endpoint.node_name
            errors += [invalid(where, name, problem) for problem in dns1123_subdomain(name)]
        if endpoint.deprecated_topology:
            errors += _validate_topology(endpoint.deprecated_topology, at.child("deprecatedTopology"))
        if endpoint.hostname is not None:
            where = at.child("hostname")
            errors += [invalid(where, endpoint.hostname, problem) for problem in is_dns1123_label(endpoint.hostname)]
        if endpoint.hints is not None:
            errors += _validate_hints(endpoint.hints, at.child("hints"))
    return errors


def _validate_addresses(addresses: list[str], kind: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not addresses:
        errors.append(required(path, "must contain at least 1 address"))
    elif len(addresses) > MAX_ADDRESSES:
        errors.append(too_many(path, len(addresses), MAX_ADDRESSES))
    for index, address in enumerate(addresses):
        if _is_fine(address, kind):
            continue
        at = path.index(index)
        if kind == "FQDN":
            errors += validate_fully_qualified_domain_name(address, at)
        elif kind in ("IPv4", "IPv6"):
            # IPv6 came with the slices and was strict from the beginning.
            wrong = is_valid_ip_for_legacy_field(at, address) if kind == "IPv4" else is_valid_ip(at, address)
            if wrong:
                errors += wrong
                continue
            ip = parse_ip(address)
            if ip is not None and kind != f"IPv{ip.version}":
                errors.append(invalid(path, address, f"must be an {kind} address"))
            errors += validate_endpoint_ip(address, at)
    return errors


@lru_cache(16_384)
def _is_fine(address: str, kind: str) -> bool:
    """Whether there is nothing to say about an IPv4 address: a slice has many, and most are known already."""
    ip = parse_ip(address)
    if kind != "IPv4" or ip is None or ip.version != 4 or str(ip) != address:
        return False
    return not validate_endpoint_ip(address, Path("address"))


def validate_fully_qualified_domain_name(name: str, path: Path) -> list[FieldError]:
    """At least two labels; a dot at the end is fine."""
    if not name:
        return [required(path)]
    name = name.removesuffix(".")
    problems = is_dns1123_subdomain(name)
    if problems:
        return [invalid(path, name, ",".join(problems))]
    labels = name.split(".")
    if len(labels) < 2:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for label in labels:
        problems = is_dns1123_label(label)
        if problems:
            return [invalid(path, label, ",".join(problems))]
    return []


def _validate_topology(topology: dict[str, str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(topology) > MAX_TOPOLOGY:
        errors.append(too_many(path, len(topology), MAX_TOPOLOGY))
    errors += validate_labels(topology, path)
    if ZONE in topology:
        errors.append(internal(path.key(ZONE), "reserved key was not removed in conversion"))
    return errors


def _validate_hints(hints: EndpointHints, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for wire, names, rule in (
        ("forZones", [each.name or "" for each in hints.for_zones or ()], is_label_value),
        ("forNodes", [each.name or "" for each in hints.for_nodes or ()], is_dns1123_subdomain),
    ):
        if len(names) > MAX_HINTS:
            return [*errors, too_many(path.child(wire), len(names), MAX_HINTS)]
        again = repeated(names)
        for index, name in enumerate(names):
            at = path.child(wire).index(index).child("name")
            if index in again:
                errors.append(duplicate(at, name))
            errors += [invalid(at, name, problem) for problem in rule(name)]
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"EndpointSlice": validate_endpoint_slice}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"EndpointSlice": validate_endpoint_slice_update}
