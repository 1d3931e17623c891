"""Defaults for Endpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..v1.service import Endpoints


def default_endpoints(obj: Endpoints) -> None:
    """Ports are TCP."""
    obj.subsets = obj.subsets or None
    for subset in obj.subsets or ():
        for port in subset.ports or ():
            if not port.protocol:
                port.protocol = "TCP"
            if port.port is None:
                port.port = 0
        for address in (*(subset.addresses or ()), *(subset.not_ready_addresses or ())):
            if address.ip is None:
                address.ip = ""


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"Endpoints": default_endpoints}
