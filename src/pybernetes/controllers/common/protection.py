"""A finalizer that keeps an object while it is used: put on everything, taken off when deletion may go ahead."""

from __future__ import annotations

from typing import TypeVar

from pybernetes.api.base import Kind
from pybernetes.client.client import Client
from pybernetes.client.keys import copy

from .meta import is_deleting, meta

K = TypeVar("K", bound=Kind)


def has_finalizer(obj: Kind, finalizer: str) -> bool:
    """Whether it is protected."""
    return finalizer in (meta(obj).finalizers or ())


def is_deletion_candidate(obj: Kind, finalizer: str) -> bool:
    """Whether its deletion waits for us."""
    return is_deleting(obj) and has_finalizer(obj, finalizer)


def needs_finalizer(obj: Kind, finalizer: str) -> bool:
    """Whether it lives without protection."""
    return not is_deleting(obj) and not has_finalizer(obj, finalizer)


async def add_finalizer(client: Client, obj: K, finalizer: str) -> K:
    """Protect."""
    changed = copy(obj)
    meta(changed).finalizers = [*(meta(obj).finalizers or ()), finalizer]
    return await client.update(changed)


async def remove_finalizer(client: Client, obj: K, finalizer: str) -> K:
    """Let go."""
    changed = copy(obj)
    meta(changed).finalizers = [each for each in meta(obj).finalizers or () if each != finalizer] or None
    return await client.update(changed)
