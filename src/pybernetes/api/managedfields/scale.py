"""Managed fields across the scale subresource.

Scale is another kind with one field that matters. Who owns the replicas of the object owns `spec.replicas` of its
scale, and the other way round; all other ownership stays with the object.
"""

from __future__ import annotations

from typing import Any

from . import entries
from .entries import Managers, Owned
from .paths import Path

SCALE_VERSION = "autoscaling/v1"
_REPLICAS: Path = ("f:spec", "f:replicas")

Mappings = dict[str, Path | None]
"""Where each version of the object keeps its replicas; nothing for a version without scale."""


def to_scale(parent: list[Any] | None, mappings: Mappings) -> list[Any]:
    """The entries of the object as those of its scale, in plain JSON."""
    scale: Managers = {}
    for who, owned in entries.decode(parent).items():
        path = mappings.get(owned.api_version)
        if path is not None and path in owned.fields:
            scale[who] = Owned(frozenset({_REPLICAS}), SCALE_VERSION, owned.time)
    return entries.encode(scale, plain=True)


def to_parent(
    parent: list[Any] | None, scale: list[Any] | None, mappings: Mappings, api_version: str, plain: bool
) -> list[Any]:
    """The entries of the object after a write to its scale left the scale with these."""
    owners: Managers = {}
    known = entries.decode(parent)
    writers = entries.decode(scale)
    for who, owned in known.items():
        if owned.api_version not in mappings:
            continue
        path = mappings[owned.api_version]
        if path is None or path not in owned.fields:
            owners[who] = owned
        elif who in writers:
            owners[who] = owned
            del writers[who]
        elif owned.fields != {path}:
            owners[who] = owned.with_fields(owned.fields - {path})
    replicas = mappings.get(api_version)
    for who, owned in writers.items():
        if _REPLICAS in owned.fields and replicas is not None:
            # A writer that is new has no time here: upstream looks it up among the entries of the object.
            time = known[who].time if who in known else None
            owners[who] = Owned(frozenset({replicas}), api_version, time)
    return entries.encode(owners, plain)
