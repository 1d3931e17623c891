"""The ConfigMaps and Secrets that this node's pods name: read when first asked for, then followed.

A node may read only what its pods name, one by one, so each object is watched by its name, from the first pod that
names it until a while after the last one has gone: the next one of the same namespace often comes soon, and a watch is
a connection. The first answer comes from a plain request and waits for no watch. Objects that say that they are
`immutable` are not watched. The pod worker that `changed(uid)` wakes reads again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar, cast

from pybernetes.api import errors
from pybernetes.api.base import Kind
from pybernetes.api.core.podconfigmaps import config_map_names
from pybernetes.api.core.podsecrets import secret_names
from pybernetes.api.core.v1 import ConfigMap, Pod, Secret
from pybernetes.client.backoff import Backoff
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.watch import BOOKMARK, DELETED

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Kind)
Ref = tuple[type[Kind], str, str]
"""Kind, namespace, name."""


class Objects(Protocol):
    """Where ConfigMaps and Secrets come from."""

    async def get(self, kind: type[K], namespace: str, name: str) -> K:
        """The object; raises `errors.NotFound` and whatever else the server says."""
        ...

    def register(self, pod: Pod) -> None:
        """Follow what a pod names; again after its spec has changed."""
        ...

    def unregister(self, uid: str) -> None:
        """Follow it no more, unless other pods name it."""
        ...

    async def close(self) -> None:
        """Follow nothing any more."""
        ...


def references(pod: Pod) -> Iterator[Ref]:
    """The objects that a pod names."""
    namespace = (pod.metadata.namespace if pod.metadata else None) or ""
    yield from ((Secret, namespace, name) for name in secret_names(pod) if name)
    yield from ((ConfigMap, namespace, name) for name in config_map_names(pod) if name)


class _Followed:
    """One object. `known`: whether `object` (None: it does not exist) is up to date with the watch."""

    def __init__(self) -> None:
        self.uids: set[str] = set()
        self.object: Kind | None = None
        self.known = False
        self.task: asyncio.Task[None] | None = None


class WatchedObjects:
    """The kubelet's strategy `configMapAndSecretChangeDetectionStrategy: Watch`."""

    def __init__(self, client: Client, clock: Clock, changed: Callable[[str], None]) -> None:
        self._client = client
        self._clock = clock
        self._changed = changed
        self._followed: dict[Ref, _Followed] = {}
        self._by_pod: dict[str, frozenset[Ref]] = {}
        """For each pod what it names: `_followed[ref].uids` has the pod for exactly these."""

    async def get(self, kind: type[K], namespace: str, name: str) -> K:
        """The object from its watch, else from a GET."""
        followed = self._followed.get((kind, namespace, name))
        if followed is not None and followed.known and followed.object is not None:
            return cast(K, followed.object)
        # also when the watch reported a deletion: it may lag behind an object that was created a moment ago
        try:
            found = await self._client.get(kind, name, namespace)
        except errors.NotFound:
            self._learnt((kind, namespace, name), None)
            raise errors.NotFound("", kind.__name__.lower(), name) from None  # upstream's cache says it in the singular
        self._learnt((kind, namespace, name), found)
        return found

    def register(self, pod: Pod) -> None:
        """Follow what a pod names; again after its spec has changed."""
        uid = (pod.metadata.uid if pod.metadata else None) or ""
        wanted = frozenset(references(pod))
        before = self._by_pod.get(uid, frozenset())
        if wanted == before:
            return
        self._by_pod[uid] = wanted
        for ref in wanted - before:
            self._followed.setdefault(ref, _Followed()).uids.add(uid)
        self._drop(uid, before - wanted)

    def unregister(self, uid: str) -> None:
        """Follow it no more, unless other pods name it."""
        self._drop(uid, self._by_pod.pop(uid, frozenset()))

    async def close(self) -> None:
        """Stop all watches."""
        tasks = [each.task for each in self._followed.values() if each.task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._followed.clear()
        self._by_pod.clear()

    def _learnt(self, ref: Ref, found: Kind | None) -> None:
        followed = self._followed.get(ref)
        if followed is None or followed.known:
            return
        followed.object, followed.known = found, True
        if found is None or not _immutable(found):
            name = f"following {ref[0].__name__} {ref[1]}/{ref[2]}"
            followed.task = asyncio.create_task(self._follow(ref, followed), name=name)

    def _drop(self, uid: str, refs: frozenset[Ref]) -> None:
        for ref in refs:
            followed = self._followed[ref]
            followed.uids.discard(uid)
            if followed.uids:
                continue
            if followed.task is not None and not followed.task.done():
                self._clock.call_later(LINGER_SECONDS, self._end, ref, followed)
            else:
                self._end(ref, followed)

    def _end(self, ref: Ref, followed: _Followed) -> None:
        if not followed.uids and self._followed.get(ref) is followed:
            del self._followed[ref]
            if followed.task:
                followed.task.cancel()

    async def _follow(self, ref: Ref, followed: _Followed) -> None:
        kind, namespace, name = ref
        backoff = Backoff(self._clock)
        while True:
            try:
                await self._watch(kind, namespace, name, followed)
                backoff.succeeded()
                if followed.object is not None and _immutable(followed.object):
                    return
                continue
            except errors.APIError as error:
                log.info("following %s %s/%s: %s", kind.__name__, namespace, name, error)
            except (OSError, TimeoutError) as error:
                log.info("following %s %s/%s: %s", kind.__name__, namespace, name, error or type(error).__name__)
            except Exception:  # a stored object may be invalid: the next version may be better
                log.exception("following %s %s/%s", kind.__name__, namespace, name)
            await self._clock.sleep(backoff.next())

    async def _watch(self, kind: type[Kind], namespace: str, name: str, followed: _Followed) -> None:
        selector = f"metadata.name={name}"
        watch = self._client.watch(
            kind, namespace, field_selector=selector, send_initial_events=True, timeout_seconds=WATCH_SECONDS
        )
        first, seen = True, False
        async with watch as events:
            async for event in events:
                if event.type == BOOKMARK:
                    if first and not seen:
                        self._now(followed, None)
                    first = False
                    continue
                seen = True
                self._now(followed, None if event.type == DELETED else event.object)
                if _immutable(event.object):
                    return

    def _now(self, followed: _Followed, found: Kind | None) -> None:
        if followed.known and _version(found) == _version(followed.object):
            return
        followed.object, followed.known = found, True
        for uid in tuple(followed.uids):
            self._changed(uid)


class FetchedObjects:
    """Asks the server: each time (`Get`), or when an answer is older than a minute or than its pod (`Cache`).

    Changes are not notified: pods see them at their next sync.
    """

    def __init__(self, client: Client, clock: Clock, ttl: float = 0.0) -> None:
        self._client = client
        self._clock = clock
        self._ttl = ttl
        self._found: dict[Ref, tuple[float, Kind]] = {}
        """Answers with the moment at which they are too old."""
        self._by_pod: dict[str, frozenset[Ref]] = {}

    async def get(self, kind: type[K], namespace: str, name: str) -> K:
        """The object as it is now, or was not long ago."""
        ref = (kind, namespace, name)
        until, known = self._found.get(ref, (0.0, None))
        if known is not None and self._clock.monotonic() < until:
            return cast(K, known)
        found = await self._client.get(kind, name, namespace)
        if self._ttl:
            self._found[ref] = (self._clock.monotonic() + self._ttl, found)
        return found

    def register(self, pod: Pod) -> None:
        """A pod that is new, or names other objects, gets them fresh."""
        uid = (pod.metadata.uid if pod.metadata else None) or ""
        wanted = frozenset(references(pod))
        if self._by_pod.get(uid) != wanted:
            self._by_pod[uid] = wanted
            self._forget(wanted)

    def unregister(self, uid: str) -> None:
        """A pod is gone."""
        self._forget(self._by_pod.pop(uid, frozenset()))

    async def close(self) -> None:
        """Nothing is open."""

    def _forget(self, refs: frozenset[Ref]) -> None:
        for ref in refs:
            self._found.pop(ref, None)


def objects_for(strategy: str, client: Client, clock: Clock, changed: Callable[[str], None]) -> Objects:
    """By the kubelet's `configMapAndSecretChangeDetectionStrategy`."""
    match strategy:
        case "Get":
            return FetchedObjects(client, clock)
        case "Cache":
            return FetchedObjects(client, clock, CACHE_SECONDS)
    return WatchedObjects(client, clock, changed)


CACHE_SECONDS = 60.0
LINGER_SECONDS = 30.0
WATCH_SECONDS = 600


def _immutable(obj: Any) -> bool:
    return bool(obj.immutable)


def _version(obj: Kind | None) -> str:
    metadata = obj.metadata if obj is not None else None
    return (metadata.resource_version if metadata else None) or ""
