"""API servers without HTTP: a registry each, several of them on one store."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pybernetes.api import scheme
from pybernetes.api.times import FakeClock, rfc3339
from pybernetes.apiserver.admission.plugin import Chain
from pybernetes.apiserver.bodies import decode_json
from pybernetes.apiserver.bootstrap.service import ensure_default_service_cidr
from pybernetes.apiserver.pipeline.change import update_object
from pybernetes.apiserver.pipeline.creation import create_object
from pybernetes.apiserver.pipeline.persist import remove, write_object
from pybernetes.apiserver.registry.registry import Registry
from pybernetes.apiserver.registry.strategy import Context
from pybernetes.apiserver.user import User
from pybernetes.store.base import Store
from pybernetes.store.cache import Cache
from pybernetes.store.memory import MemoryStore

NAMESPACE = "cases"
USER = User("admin", "1", ("system:masters",))
CIDRS = ("10.0.0.0/24", "fd00:10::/112")


class Server:
    """What a client could do to Services, and what is left in the pools."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.services = registry.store("", "v1", "services")
        self.warnings: list[str] = []

    def context(self, *, dry_run: bool = False, subresource: str = "") -> Context:
        self.warnings = []
        now = rfc3339(self.registry.clock.now())
        return Context(self.registry, USER, now, NAMESPACE, dry_run, warnings=self.warnings, subresource=subresource)

    def received(self, body: dict[str, Any]) -> Any:
        obj = decode_json(self.services.resource, json.dumps(body).encode(), "Ignore", [])
        self.services.strategy.default(obj)
        return obj

    async def create(self, body: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        item = await create_object(self.services, self.received(body), self.context(dry_run=dry_run))
        return dict(json.loads(self.services.raw(item)))

    async def update(self, body: dict[str, Any], *, dry_run: bool = False, subresource: str = "") -> dict[str, Any]:
        context = self.context(dry_run=dry_run, subresource=subresource)

        async def change(old: Any) -> Any:
            return await update_object(self.services, self.received(body), old, context)

        item = await write_object(self.services, body["metadata"]["name"], change, context)
        return dict(json.loads(self.services.raw(item)))

    async def delete(self, name: str) -> None:
        item = await self.services.get(NAMESPACE, name)
        await remove(self.services, item, self.services.decode(item), self.context())

    def addresses(self) -> set[str]:
        """The addresses that are taken."""
        store = self.registry.store("networking.k8s.io", "v1", "ipaddresses")
        return {store.split(key)[1] for key in store.partition.keys}

    async def ports(self) -> set[int]:
        """The node ports that are taken."""
        pools = self.services.strategy.pools(self.context())  # type: ignore[attr-defined]
        taken: set[int] = await pools.ports.taken()
        return taken


@asynccontextmanager
async def server(
    store: Store | None = None, cidrs: tuple[str, ...] = CIDRS, ports: tuple[int, int] = (30000, 32767)
) -> AsyncIterator[Server]:
    """A server on a store, or on one of its own."""
    own = store is None
    if store is None:
        store = MemoryStore()
        await store.start()
    cache = Cache(store, [each.storage_prefix for each in scheme.resources() if each.stored])
    await cache.start()
    registry = Registry(cache, FakeClock(), Chain([]))
    registry.service_cidrs = cidrs
    registry.node_ports = ports
    await ensure_default_service_cidr(registry)
    try:
        yield Server(registry)
    finally:
        await cache.close()
        if own:
            await store.close()


@asynccontextmanager
async def shared_store() -> AsyncIterator[MemoryStore]:
    """A store that several servers use, so that none may trust its own view."""
    store = MemoryStore()
    store.exclusive = False
    await store.start()
    try:
        yield store
    finally:
        await store.close()


def service(name: str = "one", **spec: Any) -> dict[str, Any]:
    """A Service as a client sends it."""
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}
