"""What ports of Services, Endpoints and EndpointSlices have in common."""

from __future__ import annotations

from typing import Final

from ...field import FieldError, Path, invalid, not_supported, required
from ...names import is_port_name, is_port_number, is_qualified_name

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def validate_protocol(protocol: str | None, path: Path, errors: list[FieldError]) -> None:
    """The `protocol` of the port at `path`."""
    if not protocol:
        errors.append(required(path.child("protocol")))
    elif protocol not in PROTOCOLS:
        errors.append(not_supported(path.child("protocol"), protocol, PROTOCOLS))


def validate_app_protocol(protocol: str | None, path: Path, errors: list[FieldError]) -> None:
    """The `appProtocol` of the port at `path`: a qualified name, if any."""
    if protocol is not None:
        errors += [invalid(path.child("appProtocol"), protocol, problem) for problem in is_qualified_name(protocol)]


def validate_port_number_or_name(port: int | str, path: Path) -> list[FieldError]:
    """A port by number, or by the name a container gives it."""
    problems = is_port_number(port) if isinstance(port, int) else is_port_name(port)
    return [invalid(path, port, problem) for problem in problems]
