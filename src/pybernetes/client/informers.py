"""One informer for each resource, shared by the whole process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from pybernetes.api.base import Kind
from pybernetes.api.meta.v1 import PartialObjectMetadata
from pybernetes.api.resources import Resource
from pybernetes.component.tasks import Tasks

from .client import Client
from .clock import Clock, SystemClock
from .codec import List
from .informer import Informer
from .keys import resource_of
from .metadata import MetadataClient
from .watch import Watch

K = TypeVar("K", bound=Kind)


class InformerFactory:
    """Ask for informers, `start()`, `await wait_synced()`. One asked for after the start is started at once.

    `managedFields` are dropped from cached objects: no reader uses them there, and they are half of an object. (The
    server keeps them when an update does not mention them.)
    """

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock | None = None,
        keep_managed_fields: bool = False,
        detect_mutations: bool = False,
        transform: Callable[[Kind], None] | None = None,
    ) -> None:
        """`transform` may remove unused fields from objects, before they are cached."""
        self._client = client
        self._extra = transform
        self._metadata = MetadataClient(client)
        self._clock = clock or SystemClock()
        self._keep_managed_fields = keep_managed_fields
        self._detect_mutations = detect_mutations
        self._informers: dict[tuple[object, ...], Informer[Any]] = {}
        self._running: dict[tuple[object, ...], asyncio.Task[None]] = {}
        self._users: Counter[tuple[object, ...]] = Counter()
        """How many have asked for a metadata informer and not released it."""
        self.tasks: Tasks | None = None
        """The informers' tasks, from `start()` to `stop()`."""

    def informer(
        self, kind: type[K], *, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> Informer[K]:
        """The informer of a kind; one with selectors sees, and costs, only what they select."""
        key = (kind, namespace, label_selector, field_selector)
        return cast(
            Informer[K],
            self._shared(
                key,
                lambda: self._make(
                    resource_of(kind).fullname,
                    _Typed(self._client, kind, namespace, label_selector, field_selector),
                    self._transform(resource_of(kind)),
                ),
            ),
        )

    def metadata_informer(self, resource: Resource) -> Informer[PartialObjectMetadata]:
        """The informer of any resource, which need not be known to us, with nothing but metadata.

        It is shared: a user that no longer needs it calls `release`.
        """
        key = _metadata_key(resource)
        self._users[key] += 1
        source = _Metadata(self._metadata, resource)
        name = f"{resource.fullname} (metadata)"
        return cast(
            Informer[PartialObjectMetadata], self._shared(key, lambda: self._make(name, source, self._transform(None)))
        )

    def least_informer(self, resource: Resource) -> Informer[Any]:
        """Metadata of any resource at the least cost: from who follows all of it anyway, else of its own.

        A connection of its own for what is known already would cost both sides more than the objects' other half.
        `release` it when it is needed no more.
        """
        wanted = (resource.group, resource.version, resource.plural)
        for (kind, *selectors), informer in self._informers.items():
            if isinstance(kind, type) and not any(selectors):
                known = resource_of(kind)
                if (known.group, known.version, known.plural) == wanted:
                    return informer
        return self.metadata_informer(resource)

    async def release(self, resource: Resource, informer: Informer[Any]) -> None:
        """A user of a metadata informer needs it no more; the last one stops it."""
        key = _metadata_key(resource)
        if self._informers.get(key) is not informer:
            return  # one of a kind, which stays
        self._users[key] -= 1
        if self._users[key] > 0:
            return
        del self._users[key], self._informers[key]
        if task := self._running.pop(key, None):
            task.cancel()
            await asyncio.wait([task])

    @property
    def informers(self) -> list[Informer[Any]]:
        """All that have been asked for."""
        return list(self._informers.values())

    def start(self) -> None:
        """Begin to follow the server."""
        self.tasks = self.tasks or Tasks("informers")
        for key, informer in self._informers.items():
            self._start(key, informer)

    async def wait_synced(self) -> None:
        """Return when all caches are filled."""
        for informer in self.informers:
            await informer.wait_synced()

    async def stop(self) -> None:
        """Follow no more; the caches stay as they are."""
        tasks, self.tasks = self.tasks, None
        self._running.clear()
        if tasks:
            await tasks.stop()

    def _shared(self, key: tuple[object, ...], make: Callable[[], Informer[Any]]) -> Informer[Any]:
        informer = self._informers.get(key)
        if informer is None:
            informer = self._informers[key] = make()
            self._start(key, informer)
        return informer

    def _start(self, key: tuple[object, ...], informer: Informer[Any]) -> None:
        if self.tasks and key not in self._running:
            name = f"informer of {informer.name}" if isinstance(key[0], type) else "metadata informer"
            self._running[key] = self.tasks.start(name, informer.run)

    def _make(self, name: str, source: Any, transform: Callable[[Any], None]) -> Informer[Any]:
        return Informer(name, source, self._clock, transform=transform, detect_mutations=self._detect_mutations)

    def _transform(self, resource: Resource | None) -> Callable[[Kind], None]:
        kind = resource.kind if resource else None
        api_version = resource.api_version if resource else None
        keep, extra = self._keep_managed_fields, self._extra

        def transform(obj: Kind) -> None:
            if kind:  # servers leave it out of the items of lists; also one text for all objects instead of one each
                obj.kind = kind
                obj.api_version = api_version
            if not keep and obj.metadata is not None:
                obj.metadata.managed_fields = None
            if extra is not None:
                extra(obj)

        return transform


def _metadata_key(resource: Resource) -> tuple[object, ...]:
    return ("metadata", resource.group, resource.version, resource.plural)


class _Typed(Generic[K]):
    def __init__(self, client: Client, kind: type[K], namespace: str, label_selector: str, field_selector: str) -> None:
        self._client, self._kind, self._namespace = client, kind, namespace
        self._label_selector, self._field_selector = label_selector, field_selector

    async def list(self, *, limit: int, continue_token: str) -> List[K]:
        return await self._client.list(
            self._kind,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            limit=limit,
            continue_token=continue_token,
        )

    def watch(self, *, resource_version: str, timeout_seconds: int, send_initial_events: bool) -> Watch[K]:
        return self._client.watch(
            self._kind,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            send_initial_events=send_initial_events,
        )


class _Metadata:
    def __init__(self, client: MetadataClient, resource: Resource) -> None:
        self._client, self._resource = client, resource

    async def list(self, *, limit: int, continue_token: str) -> List[PartialObjectMetadata]:
        return await self._client.list(self._resource, limit=limit, continue_token=continue_token)

    def watch(
        self, *, resource_version: str, timeout_seconds: int, send_initial_events: bool
    ) -> Watch[PartialObjectMetadata]:
        return self._client.watch(
            self._resource,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            send_initial_events=send_initial_events,
        )
