"""Which port of a container a probe or hook means."""

from __future__ import annotations

from pybernetes.api.gocompat.quote import quote
from pybernetes.api.intstr import IntOrString

from ..runtime.types import AnyContainer
from .outcome import ProbeError


def resolve_port(port: IntOrString | None, container: AnyContainer) -> int:
    """The number of a port given by number, by name, or by a number written as text. Raises ProbeError."""
    if isinstance(port, str):
        named = next((each.container_port for each in container.ports or () if each.name == port), None)
        if named is None:
            try:
                named = int(port)
            except ValueError:
                raise ProbeError(f"strconv.Atoi: parsing {quote(port)}: invalid syntax") from None
        port = named
    number = port or 0
    if not 0 < number < 65536:
        raise ProbeError(f"invalid port number: {number}")
    return number
