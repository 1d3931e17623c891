"""Short ways to what every object says about itself; what is absent has its meaning here, not None."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pybernetes.api.base import Kind
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.api.times import parse_time


def meta(obj: Kind) -> ObjectMeta:
    """The metadata, made on the spot if the object has none."""
    if obj.metadata is None:
        obj.metadata = ObjectMeta()
    return obj.metadata


def name_of(obj: Kind) -> str:
    """The name; empty if it has none."""
    return (obj.metadata.name if obj.metadata else None) or ""


def labels_of(obj: Kind) -> dict[str, str]:
    """The labels; not to be changed."""
    return (obj.metadata.labels if obj.metadata else None) or {}


def annotations_of(obj: Kind) -> dict[str, str]:
    """The annotations; not to be changed."""
    return (obj.metadata.annotations if obj.metadata else None) or {}


def is_deleting(obj: Kind) -> bool:
    """Whether it has a deletionTimestamp."""
    return obj.metadata is not None and obj.metadata.deletion_timestamp is not None


def generation_of(obj: Kind) -> int:
    """How often the desired state has changed."""
    return (obj.metadata.generation if obj.metadata else None) or 0


@lru_cache(maxsize=4096)
def seconds(time: str | None) -> float:
    """A `Time` in seconds since 1970; 0 if absent. Cached: the same few moments are compared again and again."""
    return parse_time(time) if time else 0.0


def created(obj: Kind) -> float:
    """When it was created, in seconds since 1970; 0 if that is not known."""
    return seconds(obj.metadata.creation_timestamp) if obj.metadata else 0.0


def by_creation(obj: Kind) -> tuple[Any, ...]:
    """The key that sorts objects from old to new, equal ones by name."""
    return created(obj), name_of(obj)
