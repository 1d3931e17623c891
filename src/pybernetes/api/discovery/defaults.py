"""Defaults for EndpointSlices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .v1 import EndpointConditions, EndpointSlice


def default_endpoint_slice(obj: EndpointSlice) -> None:
    """Ports have a name, if only an empty one, and are TCP."""
    for port in obj.ports or ():
        if port.name is None:
            port.name = ""
        if port.protocol is None:
            port.protocol = "TCP"
    for endpoint in obj.endpoints or ():
        if endpoint.conditions is None:
            endpoint.conditions = EndpointConditions()


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"EndpointSlice": default_endpoint_slice}
