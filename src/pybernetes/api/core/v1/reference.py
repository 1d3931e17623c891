"""core/v1: reference.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ...base import Struct
from ...types import Always, Default, MapType, Pointer, Required


class ObjectReference(Struct):
    map_type: ClassVar = MapType("atomic")

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    api_version: str | None = None
    resource_version: str | None = None
    field_path: str | None = None


class LocalObjectReference(Struct):
    map_type: ClassVar = MapType("atomic")

    name: Annotated[str | None, Default("")] = None


class SecretReference(Struct):
    map_type: ClassVar = MapType("atomic")

    name: str | None = None
    namespace: str | None = None


class TypedLocalObjectReference(Struct):
    map_type: ClassVar = MapType("atomic")

    api_group: Annotated[str | None, Always(None)] = None
    kind: Annotated[str | None, Required, Always("")] = None
    name: Annotated[str | None, Required, Always("")] = None


class TypedObjectReference(Struct):
    api_group: Annotated[str | None, Always(None)] = None
    kind: Annotated[str | None, Required, Always("")] = None
    name: Annotated[str | None, Required, Always("")] = None
    namespace: Annotated[str | None, Pointer] = None
