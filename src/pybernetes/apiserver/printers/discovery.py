"""EndpointSlices."""

from __future__ import annotations

from typing import Final

from pybernetes.api.discovery.v1 import EndpointPort, EndpointSlice

from . import formats
from .printer import AGE, NAME, UNSET, Cells, Printer, age, name, text

_SHOWN: Final = 3


def _slice(slice: EndpointSlice, now: float) -> Cells:
    ports = [_port(each) for each in slice.ports or ()]
    addresses = [each for endpoint in slice.endpoints or () for each in endpoint.addresses or ()]
    return [
        name(slice),
        slice.address_type or "",
        formats.cut(ports, len(ports), _SHOWN) or UNSET,
        formats.cut(addresses, len(addresses), _SHOWN) or UNSET,
        age(slice, now),
    ]


def _port(port: EndpointPort) -> str:
    """The number; a port without one means all, under its name if it has one."""
    if port.port is not None:
        return str(port.port)
    return "*" if port.name is None else port.name


PRINTERS: Final[dict[str, Printer]] = {
    "EndpointSlice": Printer(
        (
            NAME,
            text("AddressType", "What the addresses are"),
            text("Ports", "Ports of every endpoint"),
            text("Endpoints", "Addresses of the endpoints"),
            AGE,
        ),
        _slice,
    ),
}
