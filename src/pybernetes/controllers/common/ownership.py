"""Claims objects for a controller: adopts matching orphans, and releases objects that no longer match.

An object belongs to a controller's object if its controller reference has the owner's uid. Orphans that the selector
matches are adopted, own ones that it no longer matches are released, those of others are left alone. Before
the first adoption the owner is read from the server: the cache may not know yet that it is being deleted, and nothing
must be adopted into the grave.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from pybernetes.api import errors
from pybernetes.api.base import Kind
from pybernetes.client.client import Client
from pybernetes.client.keys import controller_of, controller_reference, key_of, uid_of

K = TypeVar("K", bound=Kind)
O = TypeVar("O", bound=Kind)  # noqa: E741


class OwnerChanged(Exception):
    """The owner is not what the cache says; come back when the cache knows."""


async def claim(
    client: Client,
    owner: O,
    candidates: Iterable[K],
    matches: Callable[[K], bool],
    *,
    finalizers: Sequence[str] = (),
    may_adopt: Callable[[], Awaitable[None]] | None = None,
) -> list[K]:
    """Those of the candidates that belong to the owner afterwards. All must be of one kind and of its namespace.

    `finalizers` are put on what is adopted. `may_adopt` is called once before the first adoption and raises to forbid
    it; by default it reads the owner and raises `OwnerChanged` if that is being deleted or is another one.
    """
    claimed: list[K] = []
    checked = False
    deleting = owner.metadata is not None and owner.metadata.deletion_timestamp is not None
    for obj in candidates:
        reference = controller_of(obj)
        if reference is not None:
            if reference.uid != uid_of(owner):
                continue
            if matches(obj):
                claimed.append(obj)
            elif not deleting:
                await release(client, owner, obj, finalizers)
            continue
        if deleting or not matches(obj):
            continue
        assert obj.metadata is not None
        if obj.metadata.deletion_timestamp is not None:
            continue
        if not checked:
            await (may_adopt() if may_adopt else check_owner(client, owner))
            checked = True
        adopted = await adopt(client, owner, obj, finalizers)
        if adopted is not None:
            claimed.append(adopted)
    return claimed


async def check_owner(client: Client, owner: Kind) -> None:
    """Raises `OwnerChanged` if the server knows the owner as deleted, being deleted, or replaced."""
    key = key_of(owner)
    try:
        fresh = await client.get(type(owner), key.name, key.namespace)
    except errors.NotFound:
        raise OwnerChanged(f"{key} is gone") from None
    if uid_of(fresh) != uid_of(owner):
        raise OwnerChanged(f"{key} has been replaced: uid {uid_of(fresh)} instead of {uid_of(owner)}")
    if fresh.metadata is not None and fresh.metadata.deletion_timestamp is not None:
        raise OwnerChanged(f"{key} has just been deleted at {fresh.metadata.deletion_timestamp}")


async def adopt(client: Client, owner: Kind, obj: K, finalizers: Sequence[str] = ()) -> K | None:
    """Make the owner control the object; None if it went away meanwhile. By strategic patch: other owners stay."""
    key = key_of(obj)
    metadata: dict[str, object] = {"ownerReferences": [controller_reference(owner)], "uid": uid_of(obj)}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    try:
        return await client.patch(type(obj), key.name, {"metadata": metadata}, key.namespace, type="strategic")
    except errors.NotFound:
        return None


async def release(client: Client, owner: Kind, obj: Kind, finalizers: Sequence[str] = ()) -> None:
    """Let go; nothing if the object is gone, has been replaced, or has let go itself."""
    key = key_of(obj)
    metadata: dict[str, object] = {
        "ownerReferences": [{"$patch": "delete", "uid": uid_of(owner)}],
        "uid": uid_of(obj),
    }
    if finalizers:
        metadata["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
    try:
        await client.patch(type(obj), key.name, {"metadata": metadata}, key.namespace, type="strategic")
    except (errors.NotFound, errors.Invalid):
        return
