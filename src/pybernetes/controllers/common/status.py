"""Writes a status if it says something new."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pybernetes.api import errors
from pybernetes.api.base import Kind
from pybernetes.client.client import Client
from pybernetes.client.keys import copy

from .meta import meta, name_of

K = TypeVar("K", bound=Kind)

# Zero and absent differ here: pointers in Go.
_POINTERS: Final = frozenset({"terminating_replicas", "collision_count"})


def same_status(one: Any, other: Any) -> bool:
    """Whether two statuses say the same; the server leaves out what is zero."""
    if one is None or other is None:
        return one is other
    for name in one.__struct_fields__:
        here, there = getattr(one, name), getattr(other, name)
        if here != there and (name in _POINTERS or here or there):
            return False
    return True


async def update_status(client: Client, obj: K, status: Any, retries: int = 1) -> K | None:
    """Give the object this status, even if it has changed meanwhile; None if it has it already."""
    current: Any = obj
    if same_status(current.status, status):
        return None
    changed: Any = copy(obj)
    for attempt in range(retries + 1):
        changed.status = status
        try:
            updated: K = await client.update_status(changed)
            return updated
        except errors.Conflict:
            if attempt == retries:
                raise
            changed = await client.get(type(obj), name_of(obj), meta(obj).namespace or "")
    raise AssertionError("not reached")
