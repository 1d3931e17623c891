"""The packets by which machines of a link ask who has an address: ARP for IPv4, neighbour discovery for IPv6 (pure)."""

from __future__ import annotations

import struct
from typing import NamedTuple

ETHERNET_ARP = 0x0806
_BROADCAST = b"\xff" * 6
_HEADER = struct.Struct("!6s6sH")
_ARP = struct.Struct("!HHBBH6s4s6s4s")
_REQUEST, _REPLY = 1, 2
SOLICITATION, ADVERTISEMENT = 135, 136
_TARGET_LINK_ADDRESS, _SOURCE_LINK_ADDRESS = 2, 1
_SOLICITED, _OVERRIDE = 0x40000000, 0x20000000
ALL_NODES = bytes.fromhex("ff020000000000000000000000000001")


class ArpRequest(NamedTuple):
    """An ARP or neighbour discovery request for the owner of an address."""

    sender_mac: bytes
    sender: bytes
    target: bytes


def parse_arp(frame: bytes) -> ArpRequest | None:
    """The request in an Ethernet frame; None if it is something else, or garbage."""
    if len(frame) < _HEADER.size + _ARP.size:
        return None
    if _HEADER.unpack_from(frame)[2] != ETHERNET_ARP:
        return None
    hardware, protocol, hlen, plen, operation, mac, sender, _, target = _ARP.unpack_from(frame, _HEADER.size)
    if (hardware, protocol, hlen, plen, operation) != (1, 0x0800, 6, 4, _REQUEST) or mac[0] & 1:
        return None
    return ArpRequest(mac, sender, target)


def arp_reply(mac: bytes, request: ArpRequest) -> bytes:
    """The frame that tells who asked that the address is ours."""
    head = _HEADER.pack(request.sender_mac, mac, ETHERNET_ARP)
    return head + _ARP.pack(1, 0x0800, 6, 4, _REPLY, mac, request.target, request.sender_mac, request.sender)


def gratuitous_arp(mac: bytes, address: bytes) -> list[bytes]:
    """Frames that announce to all that the address is ours now: machines heed one form or the other."""
    head = _HEADER.pack(_BROADCAST, mac, ETHERNET_ARP)
    request = _ARP.pack(1, 0x0800, 6, 4, _REQUEST, mac, address, bytes(6), address)
    reply = _ARP.pack(1, 0x0800, 6, 4, _REPLY, mac, address, mac, address)
    return [head + request, head + reply]


def solicited_target(message: bytes) -> bytes | None:
    """The address that an ICMPv6 neighbour solicitation asks for; None if it is something else."""
    if len(message) < 24 or message[0] != SOLICITATION or message[1] != 0 or message[8] == 0xFF:
        return None
    return message[8:24]


def advertisement(mac: bytes, address: bytes, solicited: bool) -> bytes:
    """The ICMPv6 message that an address is ours; the kernel fills in its checksum."""
    flags = _OVERRIDE | (_SOLICITED if solicited else 0)
    return struct.pack("!BBHI16sBB6s", ADVERTISEMENT, 0, 0, flags, address, _TARGET_LINK_ADDRESS, 1, mac)


def solicited_node(address: bytes) -> bytes:
    """The multicast group that is asked for an address."""
    return bytes.fromhex("ff0200000000000000000001ff") + address[-3:]
