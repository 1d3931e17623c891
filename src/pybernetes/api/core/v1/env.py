"""core/v1: env.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ...base import Struct
from ...types import Always, Default, MapType, Pointer, Quantity, Required


class EnvVar(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    value: str | None = None
    value_from: EnvVarSource | None = None


class EnvVarSource(Struct):
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: ConfigMapKeySelector | None = None
    secret_key_ref: SecretKeySelector | None = None
    file_key_ref: FileKeySelector | None = None


class EnvFromSource(Struct):
    prefix: str | None = None
    config_map_ref: ConfigMapEnvSource | None = None
    secret_ref: SecretEnvSource | None = None


class ConfigMapEnvSource(Struct):
    name: Annotated[str | None, Default("")] = None
    optional: Annotated[bool | None, Pointer] = None


class ConfigMapKeySelector(Struct):
    map_type: ClassVar = MapType("atomic")

    name: Annotated[str | None, Default("")] = None
    key: Annotated[str | None, Required, Always("")] = None
    optional: Annotated[bool | None, Pointer] = None


class SecretEnvSource(Struct):
    name: Annotated[str | None, Default("")] = None
    optional: Annotated[bool | None, Pointer] = None


class SecretKeySelector(Struct):
    map_type: ClassVar = MapType("atomic")

    name: Annotated[str | None, Default("")] = None
    key: Annotated[str | None, Required, Always("")] = None
    optional: Annotated[bool | None, Pointer] = None


class FileKeySelector(Struct):
    map_type: ClassVar = MapType("atomic")

    volume_name: Annotated[str | None, Required, Always("")] = None
    path: Annotated[str | None, Required, Always("")] = None
    key: Annotated[str | None, Required, Always("")] = None
    optional: Annotated[bool | None, Pointer, Default(False)] = None


class ObjectFieldSelector(Struct):
    map_type: ClassVar = MapType("atomic")

    api_version: str | None = None
    field_path: Annotated[str | None, Required, Always("")] = None


class ResourceFieldSelector(Struct):
    map_type: ClassVar = MapType("atomic")

    container_name: str | None = None
    resource: Annotated[str | None, Required, Always("")] = None
    divisor: Annotated[Quantity | None, Always("0")] = None
