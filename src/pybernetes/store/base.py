"""The interface of stores.

A store maps keys (`/registry/pods/default/web`) to bytes and numbers every change with one revision counter for the
whole store, as etcd does. The promises, in order of importance:

1. A write is acknowledged (its coroutine returns) only AFTER it would survive a power failure.
2. Revisions only grow, over restarts too. Two changes never share one.
3. A watch delivers every change after its start revision exactly once, in the order of revisions, and a batch never
   splits a revision. It delivers a change no earlier than it is durable.
4. `range` at a revision sees the store as it was then, until that revision is compacted.
5. What cannot be done is refused by one of the errors below; nothing is dropped silently.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

import msgspec


class Ciphertext(bytes):
    """A value as it is kept, encrypted, which none of the keys at hand opens; `why` says what is wrong."""

    why = "identity transformer tried to read encrypted data"

    @classmethod
    def of(cls, value: bytes, why: str) -> Ciphertext:
        """The value, and what is wrong with it."""
        made = cls(value)
        made.why = why
        return made


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A value as it was written at `revision`."""

    key: str
    value: bytes
    revision: int


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change. `value` is None when the key was deleted; `previous` is what was there before the change."""

    key: str
    value: bytes | None
    revision: int
    previous: Entry | None


class Page(msgspec.Struct, frozen=True, gc=False):
    """Entries in key order as of `revision`; `remaining` counts the matching keys after the last one."""

    entries: list[Entry]
    revision: int
    remaining: int


class StoreError(Exception):
    """Base of what a store raises."""


class KeyExists(StoreError):
    """`create` found the key present."""

    def __init__(self, key: str) -> None:
        super().__init__(f"key exists: {key}")
        self.key = key


class RevisionMismatch(StoreError):
    """The entry is not at the expected revision. `current` is what is there (None: no such key)."""

    def __init__(self, key: str, current: Entry | None) -> None:
        super().__init__(f"revision mismatch: {key}")
        self.key = key
        self.current = current


class Compacted(StoreError):
    """The history before `compacted` is gone."""

    def __init__(self, revision: int, compacted: int) -> None:
        super().__init__(f"revision {revision} has been compacted, the oldest is {compacted}")
        self.revision = revision
        self.compacted = compacted


class FutureRevision(StoreError):
    """The revision has not happened yet."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} is in the future, the store is at {current}")
        self.revision = revision
        self.current = current


class StoreUnavailable(StoreError):
    """The disk is full, the file is locked or damaged, etcd is away. Nothing was acknowledged."""


Receive = Callable[[list[Event]], None]
"""Takes a batch of changes."""


class Watch(Protocol):
    """Batches of changes, in order. Iterating raises `Compacted` if the start lies before the compaction."""

    def __aiter__(self) -> AsyncIterator[list[Event]]: ...

    async def close(self) -> None: ...


class Store(Protocol):
    """Keys and bytes with revisions."""

    exclusive: bool
    """Only this process writes, so its own watch is all there is to know; false for etcd."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def create(self, key: str, value: bytes, *, ttl: int | None = None) -> int:
        """Write a new key and return its revision. Raises `KeyExists`. After `ttl` seconds the key is deleted."""
        ...

    async def update(self, key: str, value: bytes, *, revision: int, ttl: int | None = None) -> int:
        """Replace the value if the entry is still at `revision`. Raises `RevisionMismatch`."""
        ...

    async def delete(self, key: str, *, revision: int) -> int:
        """Delete the key if its entry is still at `revision`; return the deletion's revision.

        Raises `RevisionMismatch`.
        """
        ...

    async def get(self, key: str) -> Entry | None:
        """The latest acknowledged value."""
        ...

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        """Entries whose key starts with `prefix` and is greater than `after`, in key order.

        As of `revision` (0: now), `limit` at most (0: all).

        Raises `Compacted` or `FutureRevision`.
        """
        ...

    def watch(self, prefix: str, *, after: int, receive: Receive | None = None) -> Watch:
        """All changes under `prefix` with a revision greater than `after`, then those to come.

        A store in this process passes changes to `receive`, if there is one, before the write returns, whenever the
        reader has taken all earlier ones and waits; if it raises, they are read again, as all that it was not given.
        """
        ...

    async def revision(self) -> int:
        """The revision of the last acknowledged change in the whole store."""
        ...

    async def compact(self, revision: int) -> None:
        """Forget what was superseded at or before `revision`. Current entries stay."""
        ...

    async def check(self) -> None:
        """Raise `StoreUnavailable` when the store could not take a write now (readiness)."""
        ...
