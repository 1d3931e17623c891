"""The kinds of apiregistration/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ..base import Kind, Struct
from ..types import Always, Base64, Int32, ListType, Patch, Pointer, Required, Time


class APIService(Kind):
    """A group and version, and who serves it."""

    spec: Annotated[APIServiceSpec | None, Always({})] = None
    status: Annotated[APIServiceStatus | None, Always({})] = None


class APIServiceSpec(Struct):
    service: ServiceReference | None = None
    group: str | None = None
    version: str | None = None
    insecure_skip_tls_verify: bool | None = field(default=None, name="insecureSkipTLSVerify")
    ca_bundle: Annotated[Base64 | None, ListType("atomic")] = None
    group_priority_minimum: Annotated[Int32 | None, Required, Always(0)] = None
    version_priority: Annotated[Int32 | None, Required, Always(0)] = None


class ServiceReference(Struct):
    namespace: str | None = None
    name: str | None = None
    port: Annotated[Int32 | None, Pointer] = None


class APIServiceStatus(Struct):
    conditions: Annotated[list[APIServiceCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = (
        None
    )


class APIServiceCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None
