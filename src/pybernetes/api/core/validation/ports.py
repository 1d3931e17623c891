"""Rules for ports of Services, Endpoints and EndpointSlices."""

from __future__ import annotations

from typing import Final

from ...field import FieldError, Path, invalid, not_supported, required
from ...names import is_qualified_name

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
