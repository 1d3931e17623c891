"""Gives Services of type LoadBalancer addresses from a pool, and takes them back.

Woken by: Services that want a load balancer, have one, or had one. Writes: `status.loadBalancer`, the finalizer
`service.kubernetes.io/load-balancer-cleanup`, and events with the reasons of upstream's controller of this name.
One worker, so that no address is given twice. The pool is filled from the status of Services before the first of them
gets anything: an address survives restarts. Which node answers for an address is not decided here.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.addresses import IPAddress
from pybernetes.api.core.v1 import Service
from pybernetes.client.keys import Key, key_of

from ..base import Controller
from ..common.meta import is_deleting, meta, name_of
from ..common.protection import has_finalizer
from .pool import FAMILIES, Pool, PoolError, parse_ranges

FINALIZER: Final = "service.kubernetes.io/load-balancer-cleanup"
CLASS: Final = "pybernetes.io/load-balancer"
"""`spec.loadBalancerClass` of Services that are ours; so are those without one."""
RETRY: Final = 60.0
"""Seconds after which a Service without address is looked at again. It is sooner when another gives one back."""


class ServiceLoadBalancerController(Controller[Service]):
    """Gives addresses."""

    name = "service-lb-controller"
    kind = Service

    def setup(self) -> None:
        """Read the pool. Raises ValueError for one that cannot be read."""
        self.recorder = self.context.events.recorder("service-controller")
        self.pool = Pool(parse_ranges(self.options.load_balancer_pool))
        self._waiting: dict[Key, str] = {}
        """Services without an address, and why."""

    def queue_name(self) -> str:
        """Upstream's word."""
        return "service"

    def concerns(self, old: Service | None, new: Service | None) -> bool:
        """Services of other types are ignored unless something is to be cleaned up."""
        if not self.pool:
            return False
        service = new or old
        assert service is not None
        key = key_of(service)
        return (
            wants_address(service) or has_finalizer(service, FINALIZER) or key in self._waiting or self.pool.owns(key)
        )

    async def run(self) -> None:
        """Take note of the addresses that Services have, oldest first, then work."""
        await self.wait_synced()
        for service in sorted(self.own.items(), key=lambda each: (meta(each).creation_timestamp or "", name_of(each))):
            if wants_address(service):
                for address in addresses_of(service):
                    self.pool.keep(key_of(service), address)
        await super().run()

    async def reconcile(self, key: Key) -> float | None:
        """Give a Service what it wants, or take back what it had."""
        service = self.own.get(key)
        if service is None:
            self._free(key)
            return None
        if not wants_address(service):
            await self._clean_up(key, service)
            return None
        return await self._ensure(key, service)

    async def _ensure(self, key: Key, service: Service) -> float | None:
        spec = service.spec
        assert spec is not None
        try:
            wanted = _wanted(spec.load_balancer_ip)
            families = [FAMILIES[each] for each in spec.ip_families or ["IPv4"] if each in FAMILIES]
            given_back = self.pool.of(key)
            self.pool.allocate(key, families, wanted, spec.ip_family_policy == "RequireDualStack")
        except PoolError as error:
            await self._refuse(key, service, str(error))
            return RETRY
        self._waiting.pop(key, None)
        if set(given_back) - set(self.pool.of(key)):
            self._wake_waiting()
        status = status_of(self.pool.of(key))
        done = has_finalizer(service, FINALIZER) and _present(service) == status["ingress"]
        if done:
            return None
        self.recorder.event(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer")
        await self._write(service, status, finalizer=True)
        self.recorder.event(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer")
        return None

    async def _refuse(self, key: Key, service: Service, why: str) -> None:
        """The Service stays without address, and its events say why, once for each reason."""
        had = self.pool.release(key)
        if self._waiting.get(key) != why:
            self._waiting[key] = why
            self.recorder.event(
                service, "Warning", "SyncLoadBalancerFailed", f"Error syncing load balancer: failed to ensure load "
                f"balancer: {why}"
            )  # fmt: skip
        if had:
            self._wake_waiting()
        if _ours_of(service, self.pool):
            await self._write(service, status_of([]), finalizer=True)

    async def _clean_up(self, key: Key, service: Service) -> None:
        """Take back the addresses of a Service that ends, or has another type or class now."""
        if has_finalizer(service, FINALIZER):
            self.recorder.event(service, "Normal", "DeletingLoadBalancer", "Deleting load balancer")
            other = not is_deleting(service) and service.spec is not None and service.spec.type == "LoadBalancer"
            # One of another class may have got its address from its own controller already.
            await self._write(service, None if other and not _ours_of(service, self.pool) else status_of([]), False)
            self.recorder.event(service, "Normal", "DeletedLoadBalancer", "Deleted load balancer")
        self._free(key)

    def _free(self, key: Key) -> None:
        self._waiting.pop(key, None)
        if self.pool.release(key):
            self._wake_waiting()

    def _wake_waiting(self) -> None:
        for key in self._waiting:
            self.queue.add(key)

    async def _write(self, service: Service, status: dict[str, Any] | None, finalizer: bool) -> None:
        """Both in one patch of the subresource `status`, which is what the controller's role may write."""
        present = meta(service).finalizers or []
        wanted = [each for each in present if each != FINALIZER] + ([FINALIZER] if finalizer else [])
        patch: dict[str, Any] = {"metadata": {"uid": meta(service).uid}}
        if status is not None:
            patch["status"] = {"loadBalancer": status if status["ingress"] else None}
        if set(wanted) != set(present):
            patch["metadata"] |= {"finalizers": wanted or None, "resourceVersion": meta(service).resource_version}
        try:
            await self.client.patch(
                Service, name_of(service), patch, meta(service).namespace or "", subresource="status"
            )
        except errors.NotFound:
            return


def wants_address(service: Service) -> bool:
    """Whether it is a load balancer of ours and stays."""
    spec = service.spec
    if spec is None or spec.type != "LoadBalancer" or is_deleting(service):
        return False
    return spec.load_balancer_class in (None, "", CLASS)


def addresses_of(service: Service) -> list[IPAddress]:
    """The addresses in its status."""
    found = []
    for each in _present(service):
        try:
            found.append(ipaddress.ip_address(str(each.get("ip"))))
        except ValueError:
            continue
    return found


def status_of(addresses: list[IPAddress]) -> dict[str, Any]:
    """`status.loadBalancer` of a Service that has these: packets arrive at nodes as the client sent them (VIP)."""
    return {"ingress": [{"ip": str(each), "ipMode": "VIP"} for each in addresses]}


def _present(service: Service) -> list[dict[str, Any]]:
    balancer = service.status.load_balancer if service.status else None
    rows = []
    for each in (balancer.ingress if balancer else None) or ():
        row = {"ip": each.ip, "hostname": each.hostname, "ipMode": each.ip_mode, "ports": each.ports}
        rows.append({name: value for name, value in row.items() if value})
    return rows


def _ours_of(service: Service, pool: Pool) -> bool:
    return any(each in pool for each in addresses_of(service))


def _wanted(text: str | None) -> IPAddress | None:
    if not text:
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise PoolError(f"spec.loadBalancerIP {text!r} is not an IP address") from None
