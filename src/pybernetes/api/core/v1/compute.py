"""core/v1: compute.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ...base import Struct
from ...types import Always, ListType, Pointer, Quantity, Required


class ResourceRequirements(Struct):
    limits: dict[str, Quantity] | None = None
    requests: dict[str, Quantity] | None = None
    claims: Annotated[list[ResourceClaim] | None, ListType("map", keys=("name",))] = None


class ResourceClaim(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    request: str | None = None


class ResourceStatus(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    resources: Annotated[list[ResourceHealth] | None, ListType("map", keys=("resourceID",))] = None


class ResourceHealth(Struct):
    resource_id: Annotated[str | None, Required, Always("")] = field(default=None, name="resourceID")
    health: str | None = None
    message: Annotated[str | None, Pointer] = None


class ContainerResizePolicy(Struct):
    resource_name: Annotated[str | None, Required, Always("")] = None
    restart_policy: Annotated[str | None, Required, Always("")] = None
