"""meta/v1: objectmeta.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ...base import Struct
from ...features import INITIALIZERS
from ...types import Always, FieldsV1, Int64, ListType, MapType, Patch, Pointer, Required, Time

if INITIALIZERS:
    from .initializers import Initializers


class ObjectMeta(Struct):
    """What every stored object says about itself."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    self_link: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: Int64 | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Annotated[Int64 | None, Pointer] = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: Annotated[list[OwnerReference] | None, ListType("map", keys=("uid",)), Patch("merge", "uid")] = (
        None
    )
    finalizers: Annotated[list[str] | None, ListType("set"), Patch("merge")] = None
    managed_fields: Annotated[list[ManagedFieldsEntry] | None, ListType("atomic")] = None
    if INITIALIZERS:
        initializers: Initializers | None = None


class OwnerReference(Struct):
    """An object that this one belongs to, and goes away with."""

    map_type: ClassVar = MapType("atomic")

    api_version: Annotated[str | None, Required, Always("")] = None
    kind: Annotated[str | None, Required, Always("")] = None
    name: Annotated[str | None, Required, Always("")] = None
    uid: Annotated[str | None, Required, Always("")] = None
    controller: Annotated[bool | None, Pointer] = None
    block_owner_deletion: Annotated[bool | None, Pointer] = None


class ManagedFieldsEntry(Struct):
    """Which fields an applier owns."""

    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    time: Time | None = None
    fields_type: str | None = None
    fields_v_1: FieldsV1 = None
    subresource: str | None = None


class Condition(Struct):
    """One aspect of an object's state, in the shape that all newer kinds share."""

    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    observed_generation: Int64 | None = None
    last_transition_time: Annotated[Time | None, Required, Always(None)] = None
    reason: Annotated[str | None, Required, Always("")] = None
    message: Annotated[str | None, Required, Always("")] = None
