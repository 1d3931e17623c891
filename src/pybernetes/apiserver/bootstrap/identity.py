"""The identity of each API server: a Lease in kube-system, by which others find the servers that are alive.

Its name is made from the machine's name, so that a server that comes back takes its own again. A lease that a server
left behind is removed by any of the others when it has not been renewed for an hour.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import socket
from typing import Any, Final

import msgspec

from pybernetes.api.coordination.v1 import Lease, LeaseSpec
from pybernetes.api.errors import APIError, Conflict, NotFound
from pybernetes.api.meta.v1 import DeleteOptions, ObjectMeta, Preconditions
from pybernetes.api.randomness import new_uid
from pybernetes.api.times import parse_time, rfc3339_micro
from pybernetes.store.base import StoreError

from ..pipeline.persist import write_object
from ..registry.registry import Registry
from ..registry.server_context import MANAGER, own_context, server_name
from ..verbs.delete import delete_object
from .objects import create, update

log = logging.getLogger(__name__)

GROUP: Final = "coordination.k8s.io"
NAMESPACE: Final = "kube-system"
IDENTITY: Final = "apiserver.kubernetes.io/identity"
_HOSTNAME: Final = "kubernetes.io/hostname"
_PEER: Final = "kubernetes.io/peer-advertise-address"
_RENEW: Final = 10.0  # seconds, and up to 4 % more; upstream's
_JITTER: Final = 0.04
_DURATION: Final = 3600  # seconds; upstream's
_COLLECT_EVERY: Final = 360  # renewals: every hour, as upstream


class Identity:
    """The lease of this server; `address` is where others reach it."""

    def __init__(self, registry: Registry, address: str, port: int) -> None:
        self._registry = registry
        self._store = registry.store(GROUP, "v1", "leases")
        self._hostname = socket.gethostname()
        self._peer = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        self.name = server_name(self._hostname)
        self._holder = f"{self.name}_{new_uid()}"

    async def keep(self) -> None:
        """Take the lease anew, renew it, and remove those of others that have expired. Runs until cancelled."""
        try:
            await self.withdraw()  # one that an earlier server of this name left behind
        except (APIError, StoreError) as error:
            log.warning("the lease of an earlier server: %s", error)
        for rounds in itertools.count():
            try:
                await self.renew()
                if rounds % _COLLECT_EVERY == 0:
                    await self.collect()
            except (APIError, StoreError) as error:
                log.warning("the lease of this server: %s", error)
            await asyncio.sleep(_RENEW * (1 + _JITTER * random.random()))

    async def renew(self) -> None:
        """Say that this server is alive."""
        context = own_context(self._registry, NAMESPACE)

        async def change(old: Any) -> Any:
            meta = msgspec.structs.replace(
                old.metadata,
                labels={**(old.metadata.labels or {}), **self._labels()},
                annotations={**(old.metadata.annotations or {}), _PEER: self._peer},
            )
            spec = old.spec or LeaseSpec(holder_identity=self._holder)
            spec = msgspec.structs.replace(spec, lease_duration_seconds=_DURATION, renew_time=self._now())
            return await update(self._store, Lease(metadata=meta, spec=spec), old, context)

        try:
            await write_object(self._store, self.name, change, context)
        except NotFound:
            spec = LeaseSpec(holder_identity=self._holder, lease_duration_seconds=_DURATION, renew_time=self._now())
            meta = ObjectMeta(
                name=self.name, namespace=NAMESPACE, labels=self._labels(), annotations={_PEER: self._peer}
            )
            await create(self._registry, self._store, Lease(metadata=meta, spec=spec))

    async def withdraw(self) -> None:
        """Say that this server is gone."""
        await self._delete(self.name)

    async def collect(self) -> None:
        """Remove the leases of servers that have been gone for long."""
        now = self._registry.clock.now()
        partition = self._store.partition
        items = [partition.items[key] for key in partition.scan(self._store.scope(NAMESPACE))]
        for item, lease in self._store.decode_all(items):
            if (lease.metadata.labels or {}).get(IDENTITY) == MANAGER and expired(lease, now):
                await self._delete(lease.metadata.name, str(item.revision))

    async def _delete(self, name: str, version: str | None = None) -> None:
        options = DeleteOptions()
        if version:
            options.preconditions = Preconditions(resource_version=version)
        try:
            await delete_object(self._store, name, options, own_context(self._registry, NAMESPACE))
        except (NotFound, Conflict):
            pass  # another server was faster, or it is alive after all

    def _labels(self) -> dict[str, str]:
        return {IDENTITY: MANAGER, _HOSTNAME: self._hostname}

    def _now(self) -> str:
        return rfc3339_micro(self._registry.clock.now())


def expired(lease: Lease, now: float) -> bool:
    """Whether a lease has expired; one without a duration counts as expired."""
    spec = lease.spec
    if spec is None or spec.renew_time is None or spec.lease_duration_seconds is None:
        return True
    return parse_time(spec.renew_time) + spec.lease_duration_seconds < now
