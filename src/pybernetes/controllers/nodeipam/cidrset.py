"""The parts of a network that nodes have got, as a map with a byte for each part. No IO."""

from __future__ import annotations

import ipaddress

from pybernetes.api.addresses import IPNetwork

MAX_IPV6_BITS = 16
"""A map of an IPv6 network could be larger than the machine: upstream's limit, too."""


class CIDRError(ValueError):
    """A range that does not fit, or none left."""


class CIDRSet:
    """A network in parts of equal size. The next part is the one after the last given, so that ranges rest a while."""

    def __init__(self, network: IPNetwork, node_prefix: int) -> None:
        bits = node_prefix - network.prefixlen
        if bits < 0:
            raise CIDRError(
                "Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to "
                "--node-cidr-mask-size configured for CIDR family"
            )
        if node_prefix > network.max_prefixlen or (network.version == 6 and bits > MAX_IPV6_BITS):
            raise CIDRError("New CIDR set failed; the node CIDR size is too big")
        self.network = network
        self.size = 1 << bits
        self.used = 0
        """How many parts are taken: the ones in `_taken`."""
        self._taken = bytearray(self.size)
        self._next = 0
        self._prefix = node_prefix
        self._shift = network.max_prefixlen - node_prefix

    def allocate(self) -> IPNetwork:
        """Take the next free part; `CIDRError` if there is none."""
        index = self._taken.find(0, self._next)
        if index < 0:
            index = self._taken.find(0)
        if index < 0:
            raise CIDRError(
                "CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range"
            )
        self._taken[index] = 1
        self.used += 1
        self._next = (index + 1) % self.size
        first = int(self.network.network_address) | index << self._shift
        address = ipaddress.IPv4Address(first) if self.network.version == 4 else ipaddress.IPv6Address(first)
        return ipaddress.ip_network((address, self._prefix))

    def occupy(self, network: IPNetwork) -> int:
        """Take all parts that a range touches; how many were free."""
        return self._set(network, 1)

    def release(self, network: IPNetwork) -> int:
        """Give back all parts that a range touches; how many were taken."""
        return self._set(network, 0)

    def overlaps(self, network: IPNetwork) -> bool:
        """Whether a range has addresses of ours."""
        return network.version == self.network.version and network.overlaps(self.network)

    def _set(self, network: IPNetwork, value: int) -> int:
        if not self.overlaps(network):
            raise CIDRError(f"cidr {network} is out the range of cluster cidr {self.network}")
        base = int(self.network.network_address)
        first = max(0, (int(network.network_address) - base) >> self._shift)
        last = min(self.size - 1, (int(network.broadcast_address) - base) >> self._shift)
        length = last - first + 1
        changed = self._taken.count(1 - value, first, last + 1)
        self._taken[first : last + 1] = bytes([value]) * length
        self.used += changed if value else -changed
        return changed
