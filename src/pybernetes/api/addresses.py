"""IP addresses and CIDR blocks in fields.

Old fields accept what the first parsers of Go did (`010.0.0.1`, IPv4 inside IPv6); since v1.36 that is refused for new
values, but an object that already has such a value keeps it. Checks therefore take the values the object had before.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

from . import field
from .field import FieldError, Path
from .gocompat.quote import quote

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_BAD_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_BAD_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_BAD_INTERFACE = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")
_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")))
_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9])")


def parse_ip(value: str) -> IPAddress | None:
    """The address as old parsers read it: leading zeros are decimal, IPv4 inside IPv6 is IPv4; None if it is none."""
    address = _address(value)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_other_machine(value: str) -> bool:
    """Whether this is the unicast address of another machine: not our own, nor of our link, however it is written.

    An IPv6 address that stands for an IPv4 address (mapped, compatible, translated, NAT64, 6to4) is judged as that one
    too: the kernel or a gateway may connect there. With leading zeros it is no address: for the C library they are
    octal, so that 0177.0.0.1 leads to 127.0.0.1.
    """
    address = _strict(value.partition("%")[0])
    if address is None:
        return False
    return all(
        not (each.is_loopback or each.is_link_local or each.is_multicast or each.is_unspecified or each == _BROADCAST)
        for each in (address, *_embedded(address))
    )


def _embedded(address: IPAddress) -> list[IPAddress]:
    """The IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = address.ipv4_mapped or address.sixtofour
    if found is None and any(address in network for network in _EMBEDDING):
        found = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return [found] if found is not None else []


def parse_cidr(value: str) -> tuple[IPAddress, IPNetwork] | None:
    """Address and network of `address/length`; None if it is none."""
    text, slash, length = value.partition("/")
    address = _address(text)
    if not slash or address is None or not (length.isascii() and length.isdigit() and len(length) < 10):
        return None
    bits = int(length)
    if bits > address.max_prefixlen:
        return None
    network = ipaddress.ip_network((address, bits), strict=False)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address), network


def is_valid_ip(path: Path | str | None, value: str) -> list[FieldError]:
    """The strict rule for new fields: valid and in canonical form."""
    problems = _ip(path, value, True)
    if problems:
        return problems
    canonical = str(parse_ip(value))
    return [] if value == canonical else [_not_canonical(path, value, canonical)]


def is_valid_ip_for_legacy_field(
    path: Path | str | None, value: str, strict: bool = True, old: Collection[str] = ()
) -> list[FieldError]:
    """The rule for old fields; values in `old` were there before and stay."""
    return [] if value in old else _ip(path, value, strict)


def is_valid_cidr(path: Path | str | None, value: str) -> list[FieldError]:
    """The strict rule for new fields: valid, no host bits, in canonical form."""
    problems = _cidr(path, value, True)
    if problems:
        return problems
    parsed = parse_cidr(value)
    canonical = str(parsed[1]) if parsed else ""
    return [] if value == canonical else [_not_canonical(path, value, canonical)]


def is_valid_cidr_for_legacy_field(
    path: Path | str | None, value: str, strict: bool = True, old: Collection[str] = ()
) -> list[FieldError]:
    """The rule for old fields; values in `old` were there before and stay."""
    return [] if value in old else _cidr(path, value, strict)


def is_valid_interface_address(path: Path | str | None, value: str) -> list[FieldError]:
    """An address with the length of its network, in canonical form."""
    parsed = parse_cidr(value)
    if parsed is None:
        return [field.invalid(path, value, _BAD_INTERFACE)]
    address, network = parsed
    length = network.prefixlen
    if address.version == 4 and length > 32:
        length -= 96
    canonical = f"{address}/{length}"
    return [] if value == canonical else [_not_canonical(path, value, canonical)]


def warnings_for_ip(path: Path | str | None, value: str) -> list[str]:
    """Warnings about an accepted address that is not in canonical form."""
    address = parse_ip(value)
    if address is None:
        return []
    if _strict(value) is None or _mapped(value):
        return [f"{path}: non-standard IP address {quote(value)} is invalid: use {quote(str(address))}"]
    if address.version == 6 and str(address) != value:
        return [f"{path}: IPv6 address {quote(value)} should be in RFC 5952 canonical format ({quote(str(address))})"]
    return []


def warnings_for_cidr(path: Path | str | None, value: str) -> list[str]:
    """Warnings about an accepted block that is not in canonical form."""
    parsed = parse_cidr(value)
    if parsed is None:
        return []
    address, network = parsed
    warnings: list[str] = []
    if address != network.network_address and not _mapped(value.partition("/")[0]):
        single = f"{address}/{network.max_prefixlen}"
        warnings.append(
            f"{path}: CIDR value {quote(value)} is ambiguous in this context "
            f"(should be {quote(str(network))} or {quote(single)}?)"
        )
    text, _, length = value.partition("/")
    if _strict(text) is None or _mapped(text) or str(int(length)) != length:
        warnings.append(f"{path}: non-standard CIDR value {quote(value)} is invalid: use {quote(str(network))}")
    elif not warnings and network.version == 6 and str(network) != value:
        warnings.append(
            f"{path}: IPv6 CIDR value {quote(value)} should be in RFC 5952 canonical format ({quote(str(network))})"
        )
    return warnings


def _ip(path: Path | str | None, value: str, strict: bool) -> list[FieldError]:
    if parse_ip(value) is None:
        return [field.invalid(path, value, _BAD_IP)]
    if strict and _strict(value) is None:
        return [field.invalid(path, value, "must not have leading 0s")]
    if strict and _mapped(value):
        return [field.invalid(path, value, "must not be an IPv4-mapped IPv6 address")]
    return []


def _cidr(path: Path | str | None, value: str, strict: bool) -> list[FieldError]:
    parsed = parse_cidr(value)
    if parsed is None:
        return [field.invalid(path, value, _BAD_CIDR)]
    if strict:
        address, network = parsed
        text, _, length = value.partition("/")
        if _strict(text) is None or str(int(length)) != length:
            return [field.invalid(path, value, "must not have leading 0s in IP or prefix length")]
        if _mapped(text):
            return [field.invalid(path, value, "must not have an IPv4-mapped IPv6 address")]
        if address != network.network_address:
            return [field.invalid(path, value, "must not have bits set beyond the prefix length")]
    return []


def _address(value: str) -> IPAddress | None:
    """Also with leading zeros in the dotted part, which Python refuses."""
    address = _strict(value)
    if address is None and "." in value:
        head, colon, dotted = value.rpartition(":")
        address = _strict(head + colon + _LEADING_ZEROS.sub("", dotted))
    return address


def _strict(value: str) -> IPAddress | None:
    if "%" in value or "/" in value:
        return None
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        return None


def _mapped(value: str) -> bool:
    address = _address(value)
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def _not_canonical(path: Path | str | None, value: str, canonical: str) -> FieldError:
    return field.invalid(path, value, f"must be in canonical form ({quote(canonical)})")
