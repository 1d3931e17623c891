"""Where a custom resource keeps its replicas and its selector (`subresources.scale`), and the Scale made of them."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.apiextensions.v1 import CustomResourceSubresourceScale
from pybernetes.api.autoscaling.v1 import Scale, ScaleSpec, ScaleStatus
from pybernetes.api.field import FieldError, Path, invalid
from pybernetes.api.gocompat import goprint
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.structural.objects import CustomObject

_MAX: Final = (1 << 31) - 1


class WrongType(ValueError):
    """Something else is at a place than should be; in upstream's words."""


def split_path(path: str | None) -> list[str]:
    """The names of a simple path, which begins with a dot."""
    return (path or "").removeprefix(".").split(".")


def nested(content: Any, path: list[str]) -> tuple[Any, bool]:
    """The value at a path, and whether it exists. Raises WrongType if a parent is not a map."""
    value = content
    for depth, name in enumerate(path):
        if value is None:
            return None, False
        if not isinstance(value, dict):
            raise _wrong(path[: depth + 1], value, "map[string]interface{}")
        if name not in value:
            return None, False
        value = value[name]
    return value, True


def integer_at(content: Any, path: str | None) -> tuple[int, bool]:
    """The number at a path and whether there is one. Raises WrongType."""
    names = split_path(path)
    value, found = nested(content, names)
    if not found:
        return 0, False
    if type(value) is not int:
        raise _wrong(names, value, "int64")
    return value, True


def text_at(content: Any, path: str | None) -> str:
    """The text at a path, empty if there is none. Raises WrongType."""
    names = split_path(path)
    value, found = nested(content, names)
    if not found:
        return ""
    if type(value) is not str:
        raise _wrong(names, value, "string")
    return value


def _wrong(path: list[str], value: Any, wanted: str) -> WrongType:
    shown, kind = goprint.plain(value), goprint.type_of(value)
    return WrongType(f".{'.'.join(path)} accessor error: {shown} is of the type {kind}, expected {wanted}")


def validate_scale_spec(scale: CustomResourceSubresourceScale, content: dict[str, Any]) -> list[FieldError]:
    """Validation errors of `spec.replicas`."""
    return _replicas(scale.spec_replicas_path or "", content)


def validate_scale_status(scale: CustomResourceSubresourceScale, content: dict[str, Any]) -> list[FieldError]:
    """Validation errors of `status.replicas` and of the selector."""
    errors = _replicas(scale.status_replicas_path or "", content)
    if scale.label_selector_path is not None:
        try:
            text_at(content, scale.label_selector_path)
        except WrongType as error:
            errors.append(invalid(Path(scale.label_selector_path), "", str(error)))
    return errors


UNSET_REPLICAS: Final = -(1 << 31)
"""The replicas of a Scale whose object says nothing of them."""


def scale_of(obj: CustomObject, scale: CustomResourceSubresourceScale) -> tuple[Scale, bool]:
    """The Scale of an object, and whether the object says how many replicas it wants. Raises WrongType."""
    wanted, found = integer_at(obj.content, scale.spec_replicas_path)
    present, _ = integer_at(obj.content, scale.status_replicas_path)
    selector = text_at(obj.content, scale.label_selector_path) if scale.label_selector_path else ""
    meta = obj.metadata
    made = Scale(
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            creation_timestamp=meta.creation_timestamp,
        ),
        spec=ScaleSpec(replicas=_int32(wanted) or None),
        status=ScaleStatus(replicas=_int32(present), selector=selector or None),
    )
    return made, found


def put_replicas(obj: CustomObject, scale: CustomResourceSubresourceScale, replicas: int) -> None:
    """Write the wanted number into the object. Raises WrongType."""
    *parents, last = split_path(scale.spec_replicas_path)
    value: Any = obj.content
    for depth, name in enumerate(parents):
        below = value.setdefault(name, {})
        if not isinstance(below, dict):
            raise WrongType(f"value cannot be set because .{'.'.join(parents[: depth + 1])} is not a map")
        value = below
    value[last] = replicas


def _int32(value: int) -> int:
    """As Go cuts it."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _replicas(path: str, content: dict[str, Any]) -> list[FieldError]:
    try:
        value, _ = integer_at(content, path)
    except WrongType as error:
        return [invalid(Path(path), 0, str(error))]
    if value < 0:
        return [invalid(Path(path), value, "should be a non-negative integer")]
    if value > _MAX:
        return [invalid(Path(path), value, f"should be less than or equal to {_MAX}")]
    return []
