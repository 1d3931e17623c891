"""Follows the APIServices: those of what is served here come and go with it, those of other servers are looked after.

A server that has none of the latter pays for a follower of a resource that hardly ever changes, and its requests for
looking at an empty dict (`Registry.aggregated`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pybernetes.api.errors import AlreadyExists, APIError, Conflict, NotFound
from pybernetes.api.times import rfc3339
from pybernetes.store.base import StoreError
from pybernetes.store.watchers import Change, Item

from ..metrics import COLLECTORS
from ..pipeline.creation import create_object
from ..pipeline.server_writes import change_object
from ..registry.managed_fields import track
from ..registry.registry import Registry
from ..registry.strategy import Context
from ..user import User

if TYPE_CHECKING:
    from prometheus_client import Metric

    from pybernetes.api.apiregistration.v1 import APIService, APIServiceCondition

    from .openapi import RemoteOpenAPI
    from .service import RemoteService

log = logging.getLogger(__name__)

GROUP: Final = "apiregistration.k8s.io"
_LOOPBACK: Final = User("system:apiserver", groups=("system:masters",))
_RETRY: Final = 1.0  # seconds after a failure of the store
_SERVICES: Final = "/registry/services/specs/"
_SLICES: Final = "/registry/endpointslices/"
SERVICE_NAME: Final = "kubernetes.io/service-name"


class Aggregation:
    """The APIServices of this server's store."""

    def __init__(self, registry: Registry, certificate: Path | None, key: Path | None) -> None:
        self._registry = registry
        self._files = (certificate, key)
        self._client: Any = None
        self._remote: dict[str, tuple[RemoteService, asyncio.Task[None]]] = {}
        self._pending: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._wanted: dict[str, APIService] = {}
        self._built_in: dict[str, APIService] = {}
        self._synced: set[str] = set()
        self._at_start: frozenset[str] = frozenset()

    async def start(self) -> None:
        """See to the APIServices of what is served here; know those of others."""
        from .registration import built_in

        registry = self._registry
        self._store = registry.store(GROUP, "v1", "apiservices")
        partition = self._store.partition
        self._at_start = frozenset(self._store.split(key)[1] for key in partition.items)
        self._built_in = built_in(registry.disabled)
        self._serve_changed()
        registry.followers.append(self._serve_changed)
        partition.followers.append(self._follow)
        self._follow(None)
        names, self._pending = list(self._pending), {}
        await asyncio.gather(*[self._register_safely(name) for name in names])

    async def run(self) -> None:
        """Follow the changes until cancelled."""
        try:
            while True:
                if not self._pending:
                    self._wake.clear()
                    await self._wake.wait()
                name = next(iter(self._pending))
                del self._pending[name]
                await self._register_safely(name)
        finally:
            for name in list(self._remote):
                self._forget(name)

    # -- following ----------------------------------------------------------------------------------------------

    def _serve_changed(self) -> None:
        """Other resources are served than before."""
        from .registration import custom

        before = self._wanted
        self._wanted = {**custom(self._registry.custom_resources()), **self._built_in}
        changed = before.keys() ^ self._wanted.keys()
        self._pending |= dict.fromkeys(sorted(changed))
        if changed:
            self._wake.set()

    def _follow(self, change: Change | None) -> None:
        items = self._store.partition.items
        for key in [change.key] if change is not None else [*items, *map(self._key, self._remote)]:
            name = self._store.split(key)[1]
            self._pending[name] = None
            self._look_at(name, items.get(key))
        self._wake.set()

    def _key(self, name: str) -> str:
        return self._store.key("", name)

    def _look_at(self, name: str, item: Item | None) -> None:
        if item is None or b'"service":{' not in item.raw:  # most are served here, and not worth being read
            self._forget(name)
            return
        obj = next((obj for _, obj in self._store.decode_all((item,))), None)
        if obj is None or obj.spec is None or obj.spec.service is None:
            self._forget(name)
            return
        present = self._remote.get(name)
        if present is not None:
            before = (present[0].priority, present[0].version_priority)
            present[0].update(obj)
            if before != (present[0].priority, present[0].version_priority):
                self._registry.generation += 1
            return
        self._add(name, obj)

    def _add(self, name: str, obj: APIService) -> None:
        from .identity import ProxyClient
        from .service import RemoteService

        registry = self._registry
        if self._client is None:
            self._client = ProxyClient(*self._files)
            COLLECTORS.append(self._collect)
            registry.cache.partitions[_SERVICES].followers.append(self._service_changed)
            registry.cache.partitions[_SLICES].followers.append(self._slice_changed)
        service = RemoteService(registry, obj, self._client, self._write_condition)
        task = asyncio.get_running_loop().create_task(service.run())
        self._remote[name] = (service, task)
        registry.aggregated[service.group, service.version] = service
        registry.generation += 1

    def _forget(self, name: str) -> None:
        found = self._remote.pop(name, None)
        if found is not None:
            service, task = found
            task.cancel()
            service.close()
            self._registry.aggregated.pop((service.group, service.version), None)
            self._registry.generation += 1

    def _service_changed(self, change: Change | None) -> None:
        for service, _ in self._remote.values():
            if change is None or change.key == f"{_SERVICES}{service.namespace}/{service.service}":
                service.look()

    def _slice_changed(self, change: Change | None) -> None:
        """Endpoints have changed: whose are they? Their label says so, and it is not worth reading all of them."""
        items = [] if change is None else [each.raw for each in (change.item, change.previous) if each is not None]
        for service, _ in self._remote.values():
            label = f'"{SERVICE_NAME}":"{service.service}"'.encode()
            if change is None or (
                change.key.startswith(f"{_SLICES}{service.namespace}/") and any(label in raw for raw in items)
            ):
                service.look()

    def _collect(self) -> Iterator[Metric]:
        """Which of them are not available, for the metrics."""
        from prometheus_client.core import GaugeMetricFamily

        text = "APIServices that are not available, by name."
        gauge = GaugeMetricFamily("aggregator_unavailable_apiservice", text, labels=("name",))
        for name, (service, _) in sorted(self._remote.items()):
            gauge.add_metric((name,), 0 if service.available else 1)
        yield gauge

    # -- those of what is served here ---------------------------------------------------------------------------

    async def _register_safely(self, name: str) -> None:
        try:
            await self._register(name)
        except (AlreadyExists, NotFound, Conflict):
            self._pending[name] = None  # another server on the same store was faster
        except (APIError, StoreError) as error:
            log.warning("apiservice %s: %s", name, error)
            await asyncio.sleep(_RETRY)
            self._pending[name] = None
        except Exception:  # one APIService must not keep the others from being looked after
            log.exception("apiservice %s", name)

    async def _register(self, name: str) -> None:
        from . import availability
        from .registration import Step, step

        item = self._store.peek("", name)
        present: APIService | None = None if item is None else self._store.decode(item)
        synced, at_start = name in self._synced, name in self._at_start
        wanted = self._wanted.get(name)
        what = step(wanted, present, synced=synced, at_start=at_start)
        if what is Step.DELETE and self._registry.settled is not None:
            await self._registry.settled()  # another server may know a definition that we do not
            wanted = self._wanted.get(name)
            what = step(wanted, present, synced=synced, at_start=at_start)
        if what is Step.CREATE:
            await self._create(name)
        elif what is Step.UPDATE:
            assert wanted is not None
            spec = wanted.spec
            await self._write(name, lambda new: setattr(new, "spec", spec))
        elif what is Step.DELETE:
            assert item is not None
            await self._store.delete(item)
        elif present is not None and name not in self._remote and not availability.says(present, availability.LOCAL):
            await self._write_condition(name, availability.LOCAL)
        if what is Step.DELETE or (wanted is None and present is None):
            self._synced.discard(name)
        else:
            self._synced.add(name)

    async def _create(self, name: str) -> None:
        import msgspec

        wanted = self._wanted[name]
        assert wanted.metadata is not None
        new = msgspec.structs.replace(wanted, metadata=msgspec.structs.replace(wanted.metadata))
        context = self._context("")
        self._store.strategy.default(new)
        track(self._store, new, None, context)
        await create_object(self._store, new, context)

    # -- writing ------------------------------------------------------------------------------------------------

    def _context(self, subresource: str) -> Context:
        return Context(
            self._registry,
            _LOOPBACK,
            rfc3339(self._registry.clock.now()),
            field_manager="kube-apiserver",
            subresource=subresource,
            group=GROUP,
            warnings=[],
        )

    async def _write_condition(self, name: str, condition: APIServiceCondition) -> None:
        from .availability import put

        now = rfc3339(self._registry.clock.now())
        try:
            await self._write(name, lambda new: put(new, condition, now), "status")
        except NotFound:
            pass  # gone in the meantime

    async def _write(self, name: str, change: Any, subresource: str = "") -> None:
        await change_object(self._store, name, change, self._context(subresource))


def remote_openapi(registry: Registry) -> RemoteOpenAPI | None:
    """The documents of other servers, if there are any."""
    if not registry.aggregated:
        return None
    if registry.remote_openapi is None:
        from .openapi import RemoteOpenAPI

        registry.remote_openapi = RemoteOpenAPI(registry)
    return registry.remote_openapi
