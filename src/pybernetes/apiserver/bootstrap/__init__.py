"""Creates the objects that exist in every cluster before the first client comes."""

from __future__ import annotations

import asyncio
import itertools
import logging

from pybernetes.api.core.v1 import Namespace
from pybernetes.api.errors import APIError, InternalError
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.store.base import StoreError

from ..registry.allocators.repair import ServiceRepair
from ..registry.registry import Registry
from .authentication import ensure_authentication
from .legacy_tokens import ensure_tracking
from .objects import ensure
from .priority_classes import system_classes
from .service import ensure_kubernetes_service, service_repair

log = logging.getLogger(__name__)

INTERVAL = 10.0  # seconds; upstream's
REPAIR_EVERY = 18  # intervals: every three minutes, as upstream, leaked addresses and ports are found
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


async def bootstrap(registry: Registry, address: str, port: int) -> None:
    """Create what is missing. What cannot be made does not keep the rest from being made; the first error is raised."""
    await registry.cache.consistent()
    work = [ensure(registry, "", "v1", "namespaces", Namespace(metadata=ObjectMeta(name=name))) for name in NAMESPACES]
    work += [ensure(registry, "scheduling.k8s.io", "v1", "priorityclasses", each) for each in system_classes()]
    work.append(ensure_kubernetes_service(registry, address, port))
    errors: list[Exception] = []
    for each in work:
        try:
            await each
        except Exception as error:
            errors.append(error)
    for ensure_config_map in (ensure_authentication, ensure_tracking):
        try:
            await ensure_config_map(registry)
        except InternalError as error:  # it is encrypted, and its key is gone
            log.error("bootstrap: %s", error)
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]


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
