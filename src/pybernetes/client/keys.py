"""How an object is named in caches and queues, and how objects name each other."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from pybernetes.api import scheme
from pybernetes.api.base import Kind, Struct
from pybernetes.api.meta.v1 import OwnerReference
from pybernetes.api.resources import RESOURCES, Resource

S = TypeVar("S", bound=Struct)


class Key(NamedTuple):
    """Where an object is: `namespace` is empty for those of the whole cluster."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(obj: Kind) -> Key:
    """The key of an object."""
    metadata = obj.metadata
    assert metadata is not None
    return Key(metadata.namespace or "", metadata.name or "")


def uid_of(obj: Kind) -> str:
    """The identity of an object, which outlives no deletion."""
    return (obj.metadata.uid if obj.metadata else None) or ""


@cache
def resource_of(kind: type[Kind]) -> Resource:
    """The resource whose objects are of this class."""
    found = _BY_CLASS.get((".".join(kind.__module__.split(".")[2:4]), kind.__name__))
    if found is None:
        raise LookupError(f"{kind.__qualname__} is not the kind of a resource")
    return found


_BY_CLASS = {(f"{each.package}.{each.version}", each.kind): each for each in RESOURCES}


def controller_of(obj: Kind) -> OwnerReference | None:
    """The owner that controls the object; there is at most one."""
    for reference in (obj.metadata.owner_references if obj.metadata else None) or ():
        if reference.controller:
            return reference
    return None


def is_controlled_by(obj: Kind, owner: Kind) -> bool:
    """Whether this very owner (the same uid) controls the object."""
    reference = controller_of(obj)
    return reference is not None and reference.uid == uid_of(owner)


def controller_reference(owner: Kind, *, block_owner_deletion: bool = True) -> OwnerReference:
    """The owner reference of an object that this owner controls."""
    resource = resource_of(type(owner))
    assert owner.metadata is not None
    return OwnerReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=block_owner_deletion,
    )


def copy(obj: S) -> S:
    """A deep copy of an object or a part of one. Objects in caches are shared: copy before the first change, always."""
    duplicate: S = _decoder(type(obj)).decode(scheme.encoder.encode(obj))
    return duplicate


@cache
def _decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
