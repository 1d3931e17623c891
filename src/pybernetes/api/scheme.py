"""Finds what is served: a resource by its plural or its kind, the class behind it, the way between two versions.

Decoders are made once for each resource and kept; making one costs milliseconds, using it microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from . import resources as table
from .resources import GROUPS, RESOURCES, Group, Resource

if TYPE_CHECKING:
    from .base import Struct

encoder = msgspec.json.Encoder()

_BY_PLURAL = {(each.group, each.version, each.plural): each for each in RESOURCES}
_BY_KIND = {(each.group, each.version, each.kind): each for each in RESOURCES}
_GROUPS = {each.name: each for each in GROUPS}

NEW_GROUP_PRIORITY = 100
"""Of groups that are added: behind all others, as those of extension servers usually are."""


def resources() -> tuple[Resource, ...]:
    """Everything that is served, in the order of discovery."""
    return table.RESOURCES


def groups() -> tuple[Group, ...]:
    """All groups, in the order of discovery."""
    return table.GROUPS


def add(resource: Resource, priority: int) -> None:
    """Know one more resource, in a version of a group that is less wanted than those there are."""
    group = _GROUPS.get(resource.group)
    if group is None:
        group = Group(resource.group, (resource.version,), NEW_GROUP_PRIORITY, (priority,))
        table.GROUPS = (*table.GROUPS, group)
    elif resource.version not in group.versions:
        group = replace(
            group,
            versions=(*group.versions, resource.version),
            version_priorities=(*group.version_priorities, priority),
        )
    table.GROUPS = tuple(group if each.name == group.name else each for each in table.GROUPS)
    table.RESOURCES = (*table.RESOURCES, resource)
    _GROUPS[group.name] = group
    _BY_PLURAL[resource.group, resource.version, resource.plural] = resource
    _BY_KIND[resource.group, resource.version, resource.kind] = resource


def group(name: str) -> Group | None:
    """A group by its name."""
    return _GROUPS.get(name)


def resource(group: str, version: str, plural: str) -> Resource | None:
    """A resource as a path names it."""
    return _BY_PLURAL.get((group, version, plural))


def by_plural() -> dict[tuple[str, str, str], Resource]:
    """All resources as paths name them."""
    return _BY_PLURAL


def resource_for_kind(group: str, version: str, kind: str) -> Resource | None:
    """A resource as an object names it."""
    return _BY_KIND.get((group, version, kind))


def storage_resource(of: Resource) -> Resource:
    """The version of the resource that is in the store."""
    if of.storage_version == of.api_version:
        return of
    group, version = split_api_version(of.storage_version)
    return _BY_KIND[group, version, of.kind]


def split_api_version(api_version: str) -> tuple[str, str]:
    """`apps/v1` -> `("apps", "v1")`, `v1` -> `("", "v1")`."""
    group, _, version = api_version.rpartition("/")
    return group, version


@lru_cache(1024)  # bodies name any kind
def type_for(api_version: str, kind: str) -> type[Struct] | None:
    """The class of a kind, also of those that are only parts of a path: Scale, Eviction, TokenRequest."""
    group, version = split_api_version(api_version)
    known = _GROUPS.get(group)
    if known is None or version not in known.versions:
        return None
    found: type[Struct] | None = getattr(
        import_module(f"pybernetes.api.{group.partition('.')[0] or 'core'}.{version}"), kind, None
    )
    return found if found is not None and "api_version" in found.__struct_fields__ else None


@cache
def decoder(of: Resource) -> msgspec.json.Decoder[Any]:
    """From JSON to the resource's class; refuses unknown fields."""
    return msgspec.json.Decoder(of.type)


@cache
def stored_decoder(of: Resource) -> Callable[[bytes], Any]:
    """From the JSON of a stored object to the resource's class, without the fields that the class does not have.

    A later version of this program may have written them, before a downgrade. Raises ValueError for what is no object
    of the class even so.
    """
    decode, cls = decoder(of).decode, of.type

    def read(raw: bytes) -> Any:
        try:
            return decode(raw)
        except msgspec.ValidationError:
            from . import strict

            return strict.convert(cls, msgspec.json.decode(raw))[0]

    return read


def convert(obj: Any, source: Resource, target: Resource) -> Any:
    """The same object in another version of its resource. The input is not changed, but may share parts."""
    if source is target:
        return obj
    return _conversion(source.api_version, target.api_version, source.kind)(obj)


@cache
def _conversion(source: str, target: str, kind: str) -> Callable[[Any], Any]:
    match source, target, kind:
        case "autoscaling/v1", "autoscaling/v2", "HorizontalPodAutoscaler":
            from .autoscaling.conversion import v1_to_v2

            return v1_to_v2
        case "autoscaling/v2", "autoscaling/v1", "HorizontalPodAutoscaler":
            from .autoscaling.conversion import v2_to_v1

            return v2_to_v1
        case "v1", "events.k8s.io/v1", "Event":
            from .events.conversion import from_core

            return from_core
        case "events.k8s.io/v1", "v1", "Event":
            from .events.conversion import to_core

            return to_core
    raise LookupError(f"no conversion of {kind} from {source} to {target}")
