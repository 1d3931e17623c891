"""The objects of one resource, in one of its versions: read from the cache, written to the store.

Below this line there are keys and bytes, above it kinds. Reads hand out `Item`s, bytes that are ready to be sent.
Writes follow one shape (`write`): look at the present object, let the caller make the new one from it, and write it on
condition that the object did not change; a write without a resourceVersion is tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pybernetes.api import scheme
from pybernetes.api.errors import AlreadyExists, Conflict, InternalError, NotFound, ServiceUnavailable
from pybernetes.api.gocompat import goencoder
from pybernetes.api.resources import Resource
from pybernetes.store.base import Entry, KeyExists, Page, RevisionMismatch, StoreUnavailable
from pybernetes.store.cache import Cache, Foreign, Partition, with_revision, without_revision
from pybernetes.store.watchers import Item
from pybernetes.trace import recorder

from .selectable import ALIASES, Attributes, attribute_reader, selectable
from .strategy import Strategy

if TYPE_CHECKING:
    from ..pipeline.default import Prepared

log = logging.getLogger(__name__)

_PATIENCE = 30.0  # seconds a write waits for its own echo from a shared store

Transform = Callable[[Any], Awaitable[Any]]
"""Makes the new object from the present one. What it returns replaces it; it may change the one it was given."""


class NeedsConversion(Exception):
    """An object is needed in another version, and only a webhook can tell (`ResourceStore.convert_for`)."""

    def __init__(self, document: dict[str, Any], api_version: str) -> None:
        super().__init__(api_version)
        self.document = document
        self.api_version = api_version


class Turn:
    """One after another, by key; the keys in `queues` are those being written, with who waits for them."""

    __slots__ = ("_cache", "_key", "_queues")

    def __init__(self, queues: dict[str, deque[asyncio.Future[None]]], key: str, cache: Cache) -> None:
        self._queues = queues
        self._key = key
        self._cache = cache

    async def __aenter__(self) -> None:
        queue = self._queues.get(self._key)
        if queue is None:
            self._queues[self._key] = deque()
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(future)
        self._cache.queued += 1
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():  # it was our turn already
                self._next()
            raise
        finally:
            self._cache.queued -= 1

    async def __aexit__(self, *_: object) -> None:
        self._next()

    def _next(self) -> None:
        queue = self._queues[self._key]
        while queue:
            future = queue.popleft()
            if not future.done():
                future.set_result(None)
                return
        del self._queues[self._key]


class ResourceStore:
    """One resource in one version."""

    custom: Any = None
    """How objects are read and shown, if the kind is one that users defined (`extensions.version.CustomVersion`)."""
    warning = ""
    """A warning for every client of the resource."""
    initializes = False
    """Whether objects may be hidden until they are initialized (`apiserver.initializers`)."""
    asks_webhook = False
    """Whether objects may have to be converted by a webhook before `raw` and `decode` can answer (`ready`)."""

    def __init__(
        self, resource: Resource, storage: Resource, cache: Cache, strategy: Strategy, ttl: int | None
    ) -> None:
        self.resource = resource
        self.storage = storage  # the version it is stored as
        self.strategy = strategy
        self.partition: Partition = cache.partitions[resource.storage_prefix]
        self.cache = cache
        self._store = cache.store
        self._stale: Callable[[str], bool] | None = getattr(cache.store, "stale", None)
        self._ttl = ttl
        self._writing: dict[str, deque[asyncio.Future[None]]] = {}
        self._converts = resource.api_version != storage.api_version
        self.form = resource.api_version
        """The form of the objects sent, as a key for caches of them."""
        self.aliases = ALIASES.get((resource.group, resource.plural), {})
        self._setup()

    def _setup(self) -> None:
        """Make what depends on how objects look."""
        self._decode = scheme.stored_decoder(self.storage)
        self._attributes = attribute_reader(self.resource.group, self.resource.plural)
        self.selectable = selectable(self.resource)
        self.prepared: dict[tuple[str, str, bytes], Prepared | None] = {}
        """Bodies of creates and what became of them (`verbs.preparing`); None: seen once."""

    # -- keys ---------------------------------------------------------------------------------------------------

    def key(self, namespace: str, name: str) -> str:
        """The key of one object."""
        prefix = self.resource.storage_prefix
        return f"{prefix}{namespace}/{name}" if self.resource.namespaced else prefix + name

    def scope(self, namespace: str) -> str:
        """The key prefix of a collection; no namespace means all of them."""
        prefix = self.resource.storage_prefix
        return f"{prefix}{namespace}/" if namespace else prefix

    def split(self, key: str) -> tuple[str, str]:
        """The namespace and name of a key."""
        rest = key[len(self.resource.storage_prefix) :]
        namespace, _, name = rest.rpartition("/")
        return namespace, name

    # -- forms --------------------------------------------------------------------------------------------------

    def decode(self, item: Item) -> Any:
        """The object, in the version it is stored as."""
        return self._decode(item.raw)

    def decode_all(self, items: Iterable[Item]) -> Iterator[tuple[Item, Any]]:
        """Objects, in the version they are stored as; those that cannot be decoded are logged and left out."""
        for item in items:
            try:
                obj = self.decode(item)
            except ValueError as error:  # msgspec's errors are ValueErrors
                log.error("%s cannot be decoded and is left out: %s", item.key, error)
            else:
                yield item, obj

    def decode_bytes(self, encoded: bytes) -> Any:
        """The same from bytes."""
        return self._decode(encoded)

    def encode(self, obj: Any) -> bytes:
        """The object as it is stored. Takes the resourceVersion out of it."""
        obj.kind = self.storage.kind
        obj.api_version = self.storage.api_version
        obj.metadata.resource_version = None
        return goencoder.encode(obj)

    def raw(self, item: Item) -> bytes:
        """The object as it is sent, in this version."""
        if not self._converts:
            return item.raw
        converted = scheme.convert(self._decode(item.raw), self.storage, self.resource)
        converted.kind = self.resource.kind
        converted.api_version = self.resource.api_version
        return goencoder.encode(converted)

    def to_storage(self, obj: Any) -> Any:
        """An object of this version, in the version it is stored as."""
        return scheme.convert(obj, self.resource, self.storage) if self._converts else obj

    def from_storage(self, obj: Any) -> Any:
        """A stored object, in this version."""
        return scheme.convert(obj, self.storage, self.resource) if self._converts else obj

    def attributes(self, item: Item) -> Attributes:
        """The attributes that selectors use; decoded once."""
        found: Attributes | None = item.attributes
        if found is None:
            namespace, name = self.split(item.key)
            try:
                found = self._attributes(item.raw, namespace, name)
            except ValueError as error:  # msgspec's errors are ValueErrors
                log.error("%s has fields of a wrong type, selectors know its name only: %s", item.key, error)
                found = Attributes({}, {"metadata.name": name, "metadata.namespace": namespace})
            if self.initializes:
                found = with_initialization(found, item)
            item.attributes = found
        return found

    # -- reads --------------------------------------------------------------------------------------------------

    def peek(self, namespace: str, name: str) -> Item | None:
        """The object in the cache, which may lag behind other servers."""
        return self.partition.items.get(self.key(namespace, name))

    async def find(self, namespace: str, name: str) -> Item | None:
        """The object as of now, or None. Raises InternalError if it cannot be decrypted."""
        if not self._store.exclusive:
            await self.consistent()
        key = self.key(namespace, name)
        item = self.partition.items.get(key)
        if item is None:
            if self.partition.sealed:
                return await self._unsealed(key)
            if key in self.partition.foreign:
                raise InternalError(Foreign(key, self.partition.foreign[key]))
        return item

    async def _unsealed(self, key: str) -> Item | None:
        """The object if it can be read by now. Raises InternalError if it cannot."""
        if key in self.partition.sealed:
            await self.unseal()
        if key in self.partition.sealed:
            raise InternalError(self.partition.sealed[key])
        return self.partition.items.get(key)

    async def unseal(self) -> None:
        """Try again to decrypt unreadable objects. Raises ServiceUnavailable."""
        try:
            await self.cache.unseal(self.partition)
        except StoreUnavailable as error:
            raise ServiceUnavailable(str(error)) from error

    async def ready(self, items: Sequence[Item]) -> None:
        """Return when `raw` and `decode` can answer for these objects."""

    async def convert_for(self, need: NeedsConversion) -> None:
        """Have an object converted; the caller tries again."""

    async def get(self, namespace: str, name: str) -> Item:
        """The object as of now. Raises NotFound."""
        item = await self.find(namespace, name)
        if item is None:
            raise self.not_found(name)
        return item

    def not_found(self, name: str) -> NotFound:
        """The error for an object that is not there."""
        return NotFound(self.resource.group, self.resource.plural, name)

    async def history(self, scope: str, after: str, limit: int, revision: int) -> Page:
        """A part of a collection as it was at a revision, from the store."""
        return await self._store.range(scope, after=after, limit=limit, revision=revision)

    async def consistent(self) -> None:
        """Return when the cache holds everything that was acknowledged before. Raises ServiceUnavailable."""
        try:
            await self.cache.consistent()
        except StoreUnavailable as error:
            raise ServiceUnavailable(str(error)) from error

    def turn(self, namespace: str, name: str) -> Turn:
        """To be held while an object is read and replaced, so that requests of this server do not race for it.

        Correctness does not hang on it, the store compares revisions; it saves work that would be thrown away.
        """
        return Turn(self._writing, self.key(namespace, name), self.cache)

    # -- writes -------------------------------------------------------------------------------------------------

    async def create(self, obj: Any, *, dry_run: bool = False) -> Item:
        """Write a new object. Raises AlreadyExists."""
        meta = obj.metadata
        key = self.key(meta.namespace or "", meta.name)
        value = self.encode(obj)
        if dry_run:
            if await self.find(meta.namespace or "", meta.name):
                raise AlreadyExists(self.resource.group, self.resource.plural, meta.name)
            return Item(key, value, 0)
        try:
            revision = await self._store.create(key, value, ttl=self._ttl)
        except KeyExists:
            raise AlreadyExists(self.resource.group, self.resource.plural, meta.name) from None
        except StoreUnavailable as error:
            raise ServiceUnavailable(str(error)) from error
        recorder.wrote(key, revision)
        if self.cache.revision < revision:
            await self.cache.wait_for(revision, _PATIENCE)
        return self._written(key, value, revision)

    async def write(self, namespace: str, name: str, transform: Transform, *, dry_run: bool = False) -> Item:
        """Replace an object by what `transform` makes of it, as often as it takes."""
        item = await self.get(namespace, name)
        while True:
            written = await self.replace(item, await transform(self.decode(item)), dry_run=dry_run)
            if written is not None:
                return written
            item = await self.get(namespace, name)

    async def replace(self, item: Item, new: Any, *, dry_run: bool = False) -> Item | None:
        """Put a new object in the place of this one; None if it was changed meanwhile. An equal object is not written
        again."""
        value = self.encode(new)
        if value == without_revision(item.raw) and not self.stale(item):
            return item
        if dry_run:
            return Item(item.key, with_revision(value, item.revision), item.revision)
        try:
            revision = await self._acknowledged(
                self._store.update(item.key, value, revision=item.revision, ttl=self._ttl)
            )
        except RevisionMismatch as mismatch:
            await self._catch_up(item, mismatch.current)
            return None
        recorder.wrote(item.key, revision)
        return self._written(item.key, value, revision)

    def stale(self, item: Item) -> bool:
        """Whether the object is worth writing again as it is: it is encrypted in another way than it would be now."""
        return self._stale is not None and self._stale(item.key)

    async def delete(self, item: Item) -> Item | None:
        """Remove an object if it is still this one; None if it has changed. Returns it as it was, at the deletion."""
        try:
            revision = await self._acknowledged(self._store.delete(item.key, revision=item.revision))
        except RevisionMismatch as mismatch:
            await self._catch_up(item, mismatch.current)
            return None
        recorder.wrote(item.key, revision)
        return self.deleted(item, revision)

    def deleted(self, last: Item | None, revision: int) -> Item:
        """The last state of an object, at the revision of its deletion."""
        assert last is not None
        return Item(last.key, with_revision(without_revision(last.raw), revision), revision)

    def conflict(self, name: str, why: str = "") -> Conflict:
        """The error for a write that was made for another state of the object."""
        if why:
            return Conflict(self.resource.group, self.resource.plural, name, why)
        return Conflict(self.resource.group, self.resource.plural, name)

    def _written(self, key: str, value: bytes, revision: int) -> Item:
        present = self.partition.items.get(key)
        if present is not None and present.revision == revision:
            return present
        return Item(key, with_revision(value, revision), revision)

    async def _acknowledged(self, write: Awaitable[int]) -> int:
        """Wait for a write and for its echo in the cache, so that the writer can read what it wrote."""
        try:
            revision = await write
        except StoreUnavailable as error:
            raise ServiceUnavailable(str(error)) from error
        if self.cache.revision < revision:
            await self.cache.wait_for(revision, _PATIENCE)
        return revision

    async def _catch_up(self, item: Item, current: Entry | None) -> None:
        """Somebody else was faster: return when the cache shows what they wrote. Raises NotFound when it is gone."""
        if current is not None:
            await self.cache.wait_for(current.revision, _PATIENCE)
            return
        await self.consistent()
        found = self.partition.items.get(item.key)
        if found is None or found.revision == item.revision:
            raise self.not_found(self.split(item.key)[1])


def with_initialization(attributes: Attributes, item: Item) -> Attributes:
    """The attributes that selectors use, and whether the object is hidden."""
    from ..initializers import is_uninitialized

    return Attributes(attributes.labels, attributes.fields, is_uninitialized(item.raw))
