"""Kubernetes' functions of addresses and ranges: `ip`, `cidr` and their methods."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address

from ...gocompat.quote import quote
from ..functions import Library, function, method
from ..types import BOOL, INT, STRING, opaque
from ..values import EvaluationError, Opaque

IP, CIDR = opaque("net.IP"), opaque("net.CIDR")
TYPES = {IP.name: IP, CIDR.name: CIDR}
Address = IPv4Address | IPv6Address


class IPValue(Opaque):
    """An address."""

    __slots__ = ("address",)
    cel_type = IP

    def __init__(self, address: Address) -> None:
        self.address = address

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IPValue) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __str__(self) -> str:
        return str(self.address)

    def cel_size(self) -> int:
        """Bytes, for cost."""
        return self.address.max_prefixlen // 8


class CIDRValue(Opaque):
    """An address and how many of its bits name the network."""

    __slots__ = ("address", "bits")
    cel_type = CIDR

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CIDRValue) and (self.address, self.bits) == (other.address, other.bits)

    def __hash__(self) -> int:
        return hash((self.address, self.bits))

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def cel_size(self) -> int:
        """Bytes, for cost."""
        return -(-self.bits // 8)

    def contains(self, address: Address) -> bool:
        """Whether the address is in the network."""
        if address.version != self.address.version:
            return False
        shift = self.address.max_prefixlen - self.bits
        return int(address) >> shift == int(self.address) >> shift

    def masked(self) -> CIDRValue:
        """The network's own address."""
        shift = self.address.max_prefixlen - self.bits
        return CIDRValue(type(self.address)(int(self.address) >> shift << shift), self.bits)


def _address(text: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        shown = quote(text)
        message = f"IP Address {shown} parse error during conversion from string: ParseAddr({shown}): {_why(text)}"
        raise EvaluationError(message) from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise EvaluationError(f"IP address {quote(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise EvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def _why(text: str) -> str:
    if ":" not in text and "." not in text:
        return "unable to parse IP"
    if ":" in text:
        return f"unexpected character (at {quote(text)})"
    parts = text.split(".")
    if any(len(part) > 1 and part[0] == "0" and part.isdigit() for part in parts):
        return "IPv4 field has octet with leading zero"
    if any(part.isascii() and part.isdigit() and (len(part) > 3 or int(part) > 255) for part in parts):
        return "IPv4 field has value >255"
    bad = next((part for part in parts if not (part.isascii() and part.isdigit())), None)
    if bad:
        return f"unexpected character (at {quote(text[text.index(bad) :])})"
    return "IPv4 address too short" if len(parts) < 4 else "IPv4 address too long"


def _cidr(text: str) -> CIDRValue:
    prefix, slash, bits = text.rpartition("/")
    prefixed = "network address parse error during conversion from string: "
    if not slash:
        raise EvaluationError(f"{prefixed}{prefixed}netip.ParsePrefix({quote(text)}): no '/'")
    try:
        address = ipaddress.ip_address(prefix)
        if "%" in prefix or not bits.isdigit() or (len(bits) > 1 and bits[0] == "0"):
            raise ValueError
        length = int(bits)
        if length > address.max_prefixlen:
            raise ValueError
    except ValueError:
        raise EvaluationError(
            f"{prefixed}{prefixed}netip.ParsePrefix({quote(text)}): {_why_prefix(prefix, bits)}"
        ) from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"{prefixed}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return CIDRValue(address, length)


def _why_prefix(address: str, bits: str) -> str:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return f"ParseAddr({quote(address)}): {_why(address)}"
    if "%" in address:
        return "IPv6 zones cannot be present in a prefix"
    if not bits.isdigit() or (len(bits) > 1 and bits[0] == "0"):
        return f"bad bits after slash: {quote(bits)}"
    return "prefix length out of range"


def _valid(parse: object, text: str) -> bool:
    try:
        parse(text)  # type: ignore[operator]
    except EvaluationError:
        return False
    return True


def _global_unicast(address: Address) -> bool:
    if isinstance(address, IPv4Address) and (int(address) == 0xFFFFFFFF):
        return False
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local)


def _link_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return int(address) >> 8 == 0xE00000
    return int(address) >> 112 & 0xFF0F == 0xFF02


def _contains_cidr(network: CIDRValue, other: CIDRValue) -> bool:
    return network.bits <= other.bits and network.contains(other.address)


LIBRARY: Library = {
    "ip": [
        function("string_to_ip", (STRING,), IP, lambda text: IPValue(_address(text))),
        method("cidr_ip", (CIDR,), IP, lambda cidr: IPValue(cidr.address)),
    ],
    "family": [method("ip_family", (IP,), INT, lambda ip: ip.address.version)],
    "ip.isCanonical": [function("ip_is_canonical", (STRING,), BOOL, lambda text: str(_address(text)) == text)],
    "isUnspecified": [method("ip_is_unspecified", (IP,), BOOL, lambda ip: ip.address.is_unspecified)],
    "isLoopback": [method("ip_is_loopback", (IP,), BOOL, lambda ip: ip.address.is_loopback)],
    "isLinkLocalMulticast": [
        method("ip_is_link_local_multicast", (IP,), BOOL, lambda ip: _link_local_multicast(ip.address))
    ],
    "isLinkLocalUnicast": [method("ip_is_link_local_unicast", (IP,), BOOL, lambda ip: ip.address.is_link_local)],
    "isGlobalUnicast": [method("ip_is_global_unicast", (IP,), BOOL, lambda ip: _global_unicast(ip.address))],
    "isIP": [function("is_ip", (STRING,), BOOL, lambda text: _valid(_address, text))],
    "string": [
        function("ip_to_string", (IP,), STRING, str),
        function("cidr_to_string", (CIDR,), STRING, str),
    ],
    "cidr": [function("string_to_cidr", (STRING,), CIDR, _cidr)],
    "containsIP": [
        method("cidr_contains_ip_string", (CIDR, STRING), BOOL, lambda cidr, text: cidr.contains(_address(text))),
        method("cidr_contains_ip", (CIDR, IP), BOOL, lambda cidr, ip: cidr.contains(ip.address)),
    ],
    "containsCIDR": [
        method("cidr_contains_cidr_string", (CIDR, STRING), BOOL, lambda cidr, text: _contains_cidr(cidr, _cidr(text))),
        method("cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr),
    ],
    "prefixLength": [method("cidr_prefix_length", (CIDR,), INT, lambda cidr: cidr.bits)],
    "masked": [method("cidr_masked", (CIDR,), CIDR, CIDRValue.masked)],
    "isCIDR": [function("is_cidr", (STRING,), BOOL, lambda text: _valid(_cidr, text))],
}
