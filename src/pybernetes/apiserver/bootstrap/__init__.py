"""What is there before the first client comes, in every cluster."""

from __future__ import annotations

import asyncio
import itertools
import logging

from pybernetes.api.core.v1 import Namespace
from pybernetes.api.errors import AlreadyExists, APIError
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.times import rfc3339
from pybernetes.store.base import StoreError

from ..authn.user import User
from ..registry.allocators.repair import ServiceRepair
from ..registry.registry import Registry
from ..registry.strategy import Context
from ..verbs.writing import create_object
from .authentication import ensure_authentication
from .priority_classes import system_classes
from .service import ensure_kubernetes_service, service_repair

log = logging.getLogger(__name__)

LOOPBACK = User("system:apiserver", groups=("system:masters",))
INTERVAL = 10.0  # seconds; upstream's
REPAIR_EVERY = 18  # intervals: every three minutes, as upstream, addresses and ports nobody holds are found
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


async def bootstrap(registry: Registry, address: str, port: int) -> None:
    """Create what is missing."""
    await registry.cache.consistent()
    for name in NAMESPACES:
        await ensure(registry, "", "v1", "namespaces", Namespace(metadata=ObjectMeta(name=name)))
    for each in system_classes():
        await ensure(registry, "scheduling.k8s.io", "v1", "priorityclasses", each)
    await ensure_kubernetes_service(registry, address, port)
    await ensure_authentication(registry)


async def keep(registry: Registry, address: str, port: int) -> None:
    """Put right, again and again, what clients or other servers have changed. Runs until cancelled."""
    repair: ServiceRepair | None = None
    for rounds in itertools.count(1):
        await asyncio.sleep(INTERVAL)
        try:
            await bootstrap(registry, address, port)
            if rounds % REPAIR_EVERY == 0:
                repair = repair or service_repair(registry)
                await repair.run_once()
        except (APIError, StoreError) as error:
            log.warning("bootstrap: %s", error)


async def ensure(registry: Registry, group: str, version: str, plural: str, obj: object) -> None:
    """Create an object unless there is one of that name."""
    store = registry.store(group, version, plural)
    meta = obj.metadata  # type: ignore[attr-defined]
    if store.peek(meta.namespace or "", meta.name):
        return
    store.strategy.default(obj)
    context = Context(registry, LOOPBACK, rfc3339(registry.clock.now()), meta.namespace or "")
    try:
        await create_object(store, obj, context)
    except AlreadyExists:
        pass  # another server on the same store was faster
