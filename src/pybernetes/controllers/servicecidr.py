"""Keeps ServiceCIDRs that Services have addresses of, and says which are ready.

Woken by: ServiceCIDRs that overlap, and IPAddresses in them. Writes: the finalizer and the `Ready` condition. One that
is deleted goes ten seconds later at the earliest, when no address would be left without a range: by then every API
server has stopped to give addresses from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from pybernetes.api import errors
from pybernetes.api.meta.v1 import Condition, ObjectMeta
from pybernetes.api.networking.v1 import IPAddress, ServiceCIDR, ServiceCIDRStatus
from pybernetes.api.times import rfc3339
from pybernetes.client.keys import Key

from .base import Controller
from .common.conditions import find_condition
from .common.meta import is_deleting, labels_of, meta, name_of, seconds
from .common.protection import has_finalizer

FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
MANAGED_BY: Final = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR: Final = "ipallocator.k8s.io"
DELETION_GRACE_PERIOD: Final = 10.0

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


class ServiceCIDRController(Controller[ServiceCIDR]):
    """Keeps ranges."""

    name = "service-cidr-controller"
    kind = ServiceCIDR
    workers = 5

    def setup(self) -> None:
        """Follow addresses, and ranges that overlap a new one."""
        self.own.add_handler(self._overlapped)
        self.addresses = self.informer(IPAddress)
        self.addresses.add_handler(self._address_seen, None, self._address_seen)

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "ipaddresses"

    async def reconcile(self, key: Key) -> float | None:
        """Protect a range, or let it go."""
        cidr = self.own.get(key)
        if cidr is None:
            return None
        if not is_deleting(cidr):
            if not has_finalizer(cidr, FINALIZER):
                await self._patch(key.name, {"finalizers": [FINALIZER]})
            await self._set_ready(cidr, "True", "", "Kubernetes Service CIDR is ready")
            return None
        if not can_delete(cidr, self.own.items(), self.addresses.items()):
            message = (
                "There are still IPAddresses referencing the ServiceCIDR, "
                "please remove them or create a new ServiceCIDR"
            )
            await self._set_ready(cidr, "False", "Terminating", message)
            return None
        wait = DELETION_GRACE_PERIOD - (self.clock.now() - seconds(meta(cidr).deletion_timestamp))
        if wait > 0:
            return wait
        if has_finalizer(cidr, FINALIZER):
            await self._patch(key.name, {"$deleteFromPrimitiveList/finalizers": [FINALIZER]})
        return None

    async def _patch(self, name: str, metadata: dict[str, object]) -> None:
        try:
            await self.client.patch(ServiceCIDR, name, {"metadata": metadata}, type="strategic")
        except errors.NotFound:
            return

    async def _set_ready(self, cidr: ServiceCIDR, status: str, reason: str, message: str) -> None:
        current = find_condition(cidr.status.conditions if cidr.status else None, "Ready")
        if current is not None and (current.status, current.reason or "", current.message) == (status, reason, message):
            return
        now = rfc3339(self.clock.now())
        condition = Condition(type="Ready", status=status, reason=reason, message=message, last_transition_time=now)
        desired = ServiceCIDR(metadata=ObjectMeta(name=name_of(cidr)), status=ServiceCIDRStatus(conditions=[condition]))
        try:
            await self.client.apply(desired, field_manager=self.name, force=True, subresource="status")
        except errors.APIError:
            message = "The ServiceCIDR Status can not be set to Ready=True"
            self.recorder.event(cidr, "Warning", "KubernetesServiceCIDRError", message)
            raise

    def _overlapped(self, cidr: ServiceCIDR) -> None:
        for each in self.own.items():
            if any(a.overlaps(b) for a in networks(cidr) for b in networks(each)):
                self.queue.add(Key("", name_of(each)))

    def _address_seen(self, found: IPAddress) -> None:
        address = _managed(found)
        if address is not None:
            for each in self.own.items():
                if contains(each, address):
                    self.queue.add(Key("", name_of(each)))


def can_delete(cidr: ServiceCIDR, others: Iterable[ServiceCIDR], addresses: Iterable[IPAddress]) -> bool:
    """Whether every address of a range is in another one too; at once if the whole range is."""
    rest = [each for each in others if name_of(each) != name_of(cidr)]
    wider = [network for each in rest for network in networks(each)]
    if all(any(_within(mine, other) for other in wider) for mine in networks(cidr)):
        return True
    for found in addresses:
        address = _managed(found)
        if address is not None and contains(cidr, address) and not any(contains(each, address) for each in rest):
            return False
    return True


def networks(cidr: ServiceCIDR) -> list[Network]:
    """The ranges of a ServiceCIDR, one for each family."""
    return [ip_network(each, strict=False) for each in (cidr.spec.cidrs if cidr.spec else None) or ()]


def contains(cidr: ServiceCIDR, address: Address) -> bool:
    """Whether a range can give this address: not its first, nor the last of IPv4."""
    for network in networks(cidr):
        if address.version != network.version or address not in network or address == network.network_address:
            continue
        if not (address.version == 4 and address == network.broadcast_address):
            return True
    return False


def _within(network: Network, other: Network) -> bool:
    if isinstance(network, IPv4Network) and isinstance(other, IPv4Network):
        return network.subnet_of(other)
    if isinstance(network, IPv6Network) and isinstance(other, IPv6Network):
        return network.subnet_of(other)
    return False


def _managed(found: IPAddress) -> Address | None:
    if labels_of(found).get(MANAGED_BY) != ALLOCATOR:
        return None
    try:
        return ip_address(name_of(found))
    except ValueError:
        return None
