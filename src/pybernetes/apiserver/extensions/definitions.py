"""Follows the CustomResourceDefinitions: serves what they define, says so in their status, takes their objects along.

One task works off the definitions that changed, one after another, so that two of a group never get the same name.
A kind is usable before clients see that it is established: the resource is served before the condition is written. When
the definition changes, its watches are ended as upstream ends them, those of other resources are not touched.

Definitions that are being deleted have a task each, which waits for the last object to go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from copy import copy
from typing import Final

import msgspec

from pybernetes.api.apiextensions import conditions
from pybernetes.api.apiextensions.conditions import CLEANUP, ESTABLISHED, NAMES_ACCEPTED, TERMINATING
from pybernetes.api.apiextensions.v1 import CustomResourceDefinition, CustomResourceDefinitionSpec
from pybernetes.api.errors import APIError, NotFound
from pybernetes.api.meta.v1 import DeleteOptions, ObjectMeta
from pybernetes.api.times import rfc3339
from pybernetes.store.base import StoreError
from pybernetes.store.watchers import Change, Item

from ..admission.plugin import Chain
from ..pipeline.server_writes import change_object
from ..registry.registry import Registry
from ..registry.strategy import Context
from ..user import User
from ..verbs.delete import delete_object
from ..webhooks.client import WebhookClient
from .conversion import Converter
from .deprecation import warning_of
from .outline import Outline, outline
from .store import CustomResourceStore

log = logging.getLogger(__name__)

GROUP: Final = "apiextensions.k8s.io"
_LOOPBACK: Final = User("system:apiserver", groups=("system:masters",))
_RETRY: Final = 1.0  # seconds after a failure of the store
_PATIENCE: Final = 60.0  # seconds after which a definition says that its objects do not go; upstream's


class Serving(msgspec.Struct):
    """A definition that is served."""

    outline: Outline
    converter: Converter
    stores: list[CustomResourceStore]
    prefix: str

    def is_of(self, outline: Outline) -> bool:
        """Whether it is served as the definition says."""
        mine, other = self.outline.definition, outline.definition
        names = (mine.status and mine.status.accepted_names, other.status and other.status.accepted_names)
        return _uid(mine) == _uid(other) and names[0] == names[1] and bytes(self.outline.spec) == bytes(outline.spec)


class Definitions:
    """All definitions of this server's store."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._webhooks = WebhookClient(registry)
        self._serving: dict[str, Serving] = {}
        self._pending: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._read: dict[str, tuple[int, CustomResourceDefinition]] = {}
        self._cleaning: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Serve what is there already."""
        self._store = self._registry.store(GROUP, "v1", "customresourcedefinitions")
        self._store.partition.followers.append(self._follow)
        self._follow(None)
        while self._pending:
            await self._next()

    async def run(self) -> None:
        """Follow the changes until cancelled."""
        try:
            while True:
                if not self._pending:
                    self._wake.clear()
                    self._idle.set()
                    await self._wake.wait()
                await self._next()
        finally:
            for task in self._cleaning.values():
                task.cancel()

    async def settled(self) -> None:
        """Return when every definition that was acknowledged before is served. Raises ServiceUnavailable."""
        await self._store.consistent()
        await self._idle.wait()

    def _follow(self, change: Change | None) -> None:
        known = self._store.partition.items
        for key in [change.key] if change is not None else [*known, *map(self._key, self._serving)]:
            self._pending[self._store.split(key)[1]] = None
        self._idle.clear()
        self._wake.set()

    def _key(self, name: str) -> str:
        return self._store.key("", name)

    async def _next(self) -> None:
        name = next(iter(self._pending))
        del self._pending[name]
        try:
            await self._sync(name)
        except (APIError, StoreError) as error:
            log.warning("customresourcedefinition %s: %s", name, error)
            self._pending[name] = None
            await asyncio.sleep(_RETRY)
        except Exception:  # one definition must not keep the others from being served
            log.exception("customresourcedefinition %s", name)

    # -- one definition -----------------------------------------------------------------------------------------

    def _get(self, name: str) -> tuple[Outline, int] | None:
        item = self._store.peek("", name)
        return None if item is None else (outline(item.raw), item.revision)

    async def _sync(self, name: str) -> None:
        found = self._get(name)
        if found is None:
            self._forget(name)
            self._reconsider(name)
            return
        read, revision = found
        definition = read.definition
        before = definition.status and msgspec.to_builtins(definition.status)
        conditions.settle(definition, self._others(definition), self._now())
        accepted = conditions.is_true(definition, NAMES_ACCEPTED) or conditions.is_true(definition, ESTABLISHED)
        if accepted:
            await self._serve(name, read, revision)
        else:
            self._forget(name)
        if msgspec.to_builtins(definition.status) != before:
            await self._write(name, lambda new: self._settle(new))
            self._reconsider(name)
        if _is_deleted(definition) and name not in self._cleaning:
            task = asyncio.get_running_loop().create_task(self._clean_up(name))
            self._cleaning[name] = task
            task.add_done_callback(lambda _: self._cleaning.pop(name, None))

    def _settle(self, definition: CustomResourceDefinition) -> None:
        conditions.settle(definition, self._others(definition), self._now())

    def _others(self, definition: CustomResourceDefinition) -> list[CustomResourceDefinition]:
        """The other definitions of the group."""
        name = (definition.metadata and definition.metadata.name) or ""
        return [self._briefly(item) for item in self._group(name)]

    def _briefly(self, item: Item) -> CustomResourceDefinition:
        """A definition of which only names and conditions are wanted; read once."""
        known = self._read.get(item.key)
        if known is None or known[0] != item.revision:
            try:
                definition = outline(item.raw).definition
            except ValueError as error:  # one that cannot be read has no names
                log.error("customresourcedefinition %s: %s", self._store.split(item.key)[1], error)
                definition = CustomResourceDefinition(metadata=ObjectMeta(), spec=CustomResourceDefinitionSpec())
            known = self._read[item.key] = (item.revision, definition)
        return known[1]

    def _group(self, name: str) -> list[Item]:
        """The other definitions of a definition's group; their names say what it is."""
        ending, key = f".{name.partition('.')[2]}", self._key(name)
        items = self._store.partition.items.values()
        return [item for item in items if item.key.endswith(ending) and item.key != key and _is_of(item.key, ending)]

    def _reconsider(self, name: str) -> None:
        """A name may have become free: others of the group that wait for one look again."""
        for item in self._group(name):
            if not conditions.is_true(self._briefly(item), NAMES_ACCEPTED):
                self._pending[self._store.split(item.key)[1]] = None

    # -- serving ------------------------------------------------------------------------------------------------

    async def _serve(self, name: str, read: Outline, revision: int) -> None:
        present = self._serving.get(name)
        definition = read.definition
        terminating = conditions.is_true(definition, TERMINATING)
        if present is not None and present.is_of(read):
            for store in present.stores:
                store.terminating = terminating
            return
        if present is not None and _uid(present.outline.definition) != _uid(definition):
            self._forget(name)
            present = None
        converter = Converter.of(read, self._webhooks)
        served = [version for version in _spec(definition).versions or () if version.served]
        resources = [converter.resources[f"{_spec(definition).group}/{version.name}"] for version in served]
        prefix = f"/registry/{_spec(definition).group}/{name.partition('.')[0]}/"
        partition = await self._registry.cache.add_partition(prefix)
        stores = [
            CustomResourceStore(resource, self._registry.cache, revision, converter, warning_of(resource))
            for resource in resources
        ]
        for store in stores:
            store.terminating = terminating
        self._serving[name] = Serving(read, converter, stores, prefix)
        self._registry.serve(stores, present.stores if present is not None else [])
        for watcher in tuple(partition.watchers):
            watcher.end(None)

    def _forget(self, name: str) -> None:
        self._read.pop(self._key(name), None)
        present = self._serving.pop(name, None)
        if present is not None:
            self._registry.serve([], present.stores)
            self._registry.cache.remove_partition(present.prefix)

    # -- the end ------------------------------------------------------------------------------------------------

    async def _clean_up(self, name: str) -> None:
        """Delete the objects of a definition that is being deleted, and let it go when they are gone."""
        while (found := self._get(name)) is not None and _is_deleted(found[0].definition):
            try:
                await self._clean_up_once(name, found[0].definition)
                return
            except NotFound:
                return
            except TimeoutError:
                why = "could not confirm zero CustomResources remaining: timed out waiting for the condition"
                await self._say(name, "True", "InstanceDeletionCheck", why)
            except (APIError, StoreError) as error:
                log.warning("customresourcedefinition %s: deleting its objects: %s", name, error)
                await asyncio.sleep(_RETRY)

    async def _clean_up_once(self, name: str, definition: CustomResourceDefinition) -> None:
        await self._say(name, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
        if not conditions.is_true(definition, ESTABLISHED):
            await self._finish(name, "NeverEstablished", "resource was never established")
            return
        await self._idle.wait()
        serving = self._serving.get(name)
        if serving is not None:
            await self._delete_objects(serving)
        await self._finish(name, "InstanceDeletionCompleted", "removed all instances")

    async def _delete_objects(self, serving: Serving) -> None:
        registry = copy(self._registry)
        registry.admission = Chain([])  # without admission; upstream goes to the storage, too
        converter, cache = serving.converter, registry.cache
        # In the stored version, which needs no webhook, and whether it is served or not.
        store = CustomResourceStore(converter.stored, cache, 0, converter, "")
        partition = cache.partitions[serving.prefix]
        changed = asyncio.Event()
        follower: Callable[[Change | None], None] = lambda _: changed.set()  # noqa: E731
        partition.followers.append(follower)
        try:
            for key in list(partition.items):
                namespace, name = store.split(key)
                context = Context(registry, _LOOPBACK, self._now(), namespace)
                try:
                    await delete_object(store, name, DeleteOptions(), context)
                except NotFound:
                    pass  # gone already
            async with asyncio.timeout(_PATIENCE):
                while partition.items:
                    changed.clear()
                    await changed.wait()
        finally:
            partition.followers.remove(follower)

    async def _say(self, name: str, status: str, reason: str, message: str) -> None:
        await self._write(name, lambda new: conditions.put(new, self._now(), TERMINATING, status, reason, message))

    async def _finish(self, name: str, reason: str, message: str) -> None:
        def change(new: CustomResourceDefinition) -> None:
            conditions.put(new, self._now(), TERMINATING, "False", reason, message)
            assert new.metadata is not None
            new.metadata.finalizers = [each for each in new.metadata.finalizers or () if each != CLEANUP] or None

        await self._write(name, change)

    # -- writing ------------------------------------------------------------------------------------------------

    async def _write(self, name: str, change: Callable[[CustomResourceDefinition], None]) -> None:
        context = Context(
            self._registry, _LOOPBACK, self._now(), field_manager="kube-apiserver", subresource="status", group=GROUP
        )
        await change_object(self._store, name, change, context)

    def _now(self) -> str:
        return rfc3339(self._registry.clock.now())


def _is_of(key: str, ending: str) -> bool:
    """Whether a definition's key ends in a group and not in a part of one."""
    return "." not in key.rpartition("/")[2].removesuffix(ending)


def _spec(definition: CustomResourceDefinition) -> CustomResourceDefinitionSpec:
    return definition.spec or CustomResourceDefinitionSpec()


def _uid(definition: CustomResourceDefinition) -> str:
    return (definition.metadata and definition.metadata.uid) or ""


def _is_deleted(definition: CustomResourceDefinition) -> bool:
    meta = definition.metadata
    return meta is not None and bool(meta.deletion_timestamp) and CLEANUP in (meta.finalizers or ())
