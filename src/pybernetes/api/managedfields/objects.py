"""Objects as they come, Structs or plain JSON, looked at in one way."""

from __future__ import annotations

from typing import Any

import msgspec

from ..base import Kind, Struct
from .fieldset import Set
from .kinds import complete
from .node import Node

Object = dict[str, Any]

_NOT_OWNED = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
STRIPPED: Set = frozenset(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", "f:" + name) for name in _NOT_OWNED)]
)
"""Fields without managers: the identity of the object, and those that only the server writes."""


def plain(obj: Object | Kind, node: Node, api_version: str) -> Object:
    """The object as upstream would see it, without its managed fields."""
    value: Object = msgspec.to_builtins(obj) if isinstance(obj, Struct) else {**obj}
    value["apiVersion"] = api_version
    result: Object = complete(without_entries(value), node)
    return result


def zero(node: Node, api_version: str) -> Object:
    """The object before the first write."""
    result: Object = complete({"apiVersion": api_version}, node)
    return result


def changed_part(old: Object | Kind, new: Object | Kind, node: Node, api_version: str) -> tuple[Object, Object]:
    """Both objects as upstream would see them, but of Structs only the fields that differ."""
    if not (isinstance(old, Kind) and isinstance(new, Kind) and type(old) is type(new)):
        return plain(old, node, api_version), plain(new, node, api_version)
    before: Object = {}
    after: Object = {}
    ours, theirs = without_entries(old), without_entries(new)
    for name, wire in zip(new.__struct_fields__, new.__struct_encode_fields__, strict=True):
        was, now = getattr(ours, name), getattr(theirs, name)
        if was == now or name in ("kind", "api_version"):
            continue
        if was is not None:
            before[wire] = msgspec.to_builtins(was)
        if now is not None:
            after[wire] = msgspec.to_builtins(now)
    return complete(before, node), complete(after, node)


def entries_of(obj: Object | Kind | None) -> list[Any] | None:
    """`metadata.managedFields`."""
    if isinstance(obj, Kind):
        return obj.metadata.managed_fields if obj.metadata is not None else None
    found: list[Any] | None = metadata(obj or {}).get("managedFields")
    return found


def has_uid(obj: Object | Kind) -> bool:
    """Whether the object was ever stored."""
    if isinstance(obj, Kind):
        return bool(obj.metadata is not None and obj.metadata.uid)
    return bool(metadata(obj).get("uid"))


def without_entries(obj: Any) -> Any:
    """The object without its managed fields."""
    if isinstance(obj, Kind):
        if obj.metadata is None or obj.metadata.managed_fields is None:
            return obj
        return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, managed_fields=None))
    found = metadata(obj)
    if "managedFields" not in found:
        return obj
    return {**obj, "metadata": {key: value for key, value in found.items() if key != "managedFields"}}


def with_entries(obj: Object, entries: list[Any]) -> Object:
    """The object with these managed fields."""
    found = {key: value for key, value in metadata(obj).items() if key != "managedFields"}
    if entries:
        found["managedFields"] = entries
    return {**obj, "metadata": found}


def metadata(obj: Object) -> Object:
    """The metadata of a plain object, empty if there is none."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}
