"""The kinds of discovery/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ..base import Kind, Struct
from ..core.v1.reference import ObjectReference
from ..types import Always, Enum, Int32, ListType, MapType, Pointer, Required


class EndpointSlice(Kind):
    """Some of the endpoints of a service."""

    address_type: Annotated[str | None, Required, Always(""), Enum("FQDN", "IPv4", "IPv6")] = None
    endpoints: Annotated[list[Endpoint] | None, Always(None), ListType("atomic")] = None
    ports: Annotated[list[EndpointPort] | None, Always(None), ListType("atomic")] = None


class Endpoint(Struct):
    addresses: Annotated[list[str] | None, Required, Always(None), ListType("set")] = None
    conditions: Annotated[EndpointConditions | None, Always({})] = None
    hostname: Annotated[str | None, Pointer] = None
    target_ref: ObjectReference | None = None
    deprecated_topology: dict[str, str] | None = None
    node_name: Annotated[str | None, Pointer] = None
    zone: Annotated[str | None, Pointer] = None
    hints: EndpointHints | None = None


class EndpointConditions(Struct):
    ready: Annotated[bool | None, Pointer] = None
    serving: Annotated[bool | None, Pointer] = None
    terminating: Annotated[bool | None, Pointer] = None


class EndpointHints(Struct):
    for_zones: Annotated[list[ForZone] | None, ListType("atomic")] = None
    for_nodes: Annotated[list[ForNode] | None, ListType("atomic")] = None


class ForZone(Struct):
    name: Annotated[str | None, Required, Always("")] = None


class ForNode(Struct):
    name: Annotated[str | None, Required, Always("")] = None


class EndpointPort(Struct):
    map_type: ClassVar = MapType("atomic")

    name: Annotated[str | None, Pointer] = None
    protocol: Annotated[str | None, Pointer, Enum("SCTP", "TCP", "UDP")] = None
    port: Annotated[Int32 | None, Pointer] = None
    app_protocol: Annotated[str | None, Pointer] = None
