"""meta/v1: discovery.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ...base import Struct
from ...types import Always, ListType, Required


class APIVersions(Struct):
    kind: str | None = None
    api_version: str | None = None
    server_address_by_client_cidrs: Annotated[list[ServerAddressByClientCIDR] | None, Required, ListType("atomic")] = (
        field(default=None, name="serverAddressByClientCIDRs")
    )
    versions: Annotated[list[str] | None, Required, ListType("atomic")] = None


class APIGroupList(Struct):
    kind: str | None = None
    api_version: str | None = None
    groups: Annotated[list[APIGroup] | None, Required, ListType("atomic")] = None


class APIGroup(Struct):
    """A group in discovery."""

    kind: str | None = None
    api_version: str | None = None
    name: Annotated[str | None, Required] = None
    preferred_version: GroupVersionForDiscovery | None = None
    server_address_by_client_cidrs: Annotated[list[ServerAddressByClientCIDR] | None, ListType("atomic")] = field(
        default=None, name="serverAddressByClientCIDRs"
    )
    versions: Annotated[list[GroupVersionForDiscovery] | None, Required, ListType("atomic")] = None


class GroupVersionForDiscovery(Struct):
    group_version: Annotated[str | None, Required] = None
    version: Annotated[str | None, Required] = None


class ServerAddressByClientCIDR(Struct):
    client_cidr: Annotated[str | None, Required] = field(default=None, name="clientCIDR")
    server_address: Annotated[str | None, Required] = None


class APIResourceList(Struct):
    kind: str | None = None
    api_version: str | None = None
    group_version: Annotated[str | None, Required, Always("")] = None
    resources: Annotated[list[APIResource] | None, Required, Always(None), ListType("atomic")] = None


class APIResource(Struct):
    """A resource in discovery."""

    name: Annotated[str | None, Required, Always("")] = None
    singular_name: Annotated[str | None, Required, Always("")] = None
    namespaced: Annotated[bool | None, Required, Always(False)] = None
    group: str | None = None
    version: str | None = None
    kind: Annotated[str | None, Required, Always("")] = None
    verbs: Annotated[list[str] | None, Required, Always(None)] = None
    short_names: Annotated[list[str] | None, ListType("atomic")] = None
    categories: Annotated[list[str] | None, ListType("atomic")] = None
    storage_version_hash: str | None = None


class GroupResource(Struct):
    group: Annotated[str | None, Required] = None
    resource: Annotated[str | None, Required] = None
