"""Ranges for nodes, one from each network of the cluster: which are taken, and by whom. No IO."""

from __future__ import annotations

from collections.abc import Sequence

from pybernetes.api.addresses import IPNetwork, parse_cidr
from pybernetes.api.core.v1 import Node

from ..common.meta import name_of
from .cidrset import CIDRError, CIDRSet
from .settings import Settings


class RangeAllocator:
    """The maps of all networks. The ranges of Services are taken from the beginning."""

    def __init__(self, settings: Settings) -> None:
        self.sets = [CIDRSet(network, prefix) for network, prefix in settings.ranges]
        self._services = settings.services
        self._keep_services()

    def allocate(self) -> list[str]:
        """A free range of each network; `CIDRError` if one of them has none, and then nothing is taken."""
        taken: list[IPNetwork] = []
        for index, each in enumerate(self.sets):
            try:
                taken.append(each.allocate())
            except CIDRError as error:
                self._release(taken)
                raise CIDRError(f"failed to allocate cidr from cluster cidr at idx:{index}: {error}") from error
        return [str(network) for network in taken]

    def occupy(self, node: Node) -> None:
        """Mark the node's ranges as used; `CIDRError` if they are outside of ours."""
        for index, (text, network) in enumerate(self._ranges(node)):
            try:
                whole = self.sets[index].network
                if network.prefixlen < whole.prefixlen and network.overlaps(whole):
                    raise CIDRError(f"cidr {network} is larger than cluster cidr {whole}")
                self.sets[index].occupy(network)
            except CIDRError as error:
                raise CIDRError(
                    f"failed to mark cidr[{text}] at idx [{index}] as occupied for node: {name_of(node)}: {error}"
                ) from error

    def release(self, ranges: Sequence[str]) -> None:
        """Ranges that `allocate` gave, or a node had, are free again; those that are not ours are left alone."""
        for each, text in zip(self.sets, ranges, strict=False):
            parsed = parse_cidr(text)
            if parsed is not None and each.overlaps(parsed[1]):
                each.release(parsed[1])
        self._keep_services()  # a node may have had a range there by hand

    def _keep_services(self) -> None:
        for service in self._services:
            for each in self.sets:
                if each.overlaps(service):
                    each.occupy(service)

    def _release(self, networks: Sequence[IPNetwork]) -> None:
        for each, network in zip(self.sets, networks, strict=False):
            each.release(network)

    def _ranges(self, node: Node) -> list[tuple[str, IPNetwork]]:
        found = []
        for index, text in enumerate(ranges_of(node)):
            parsed = parse_cidr(text)
            if parsed is None:
                raise CIDRError(f"failed to parse node {name_of(node)}, CIDR {text}")
            if index >= len(self.sets):
                raise CIDRError(
                    f"node:{name_of(node)} has an allocated cidr: {text} at index:{index} that does not exist in "
                    "cluster cidrs configuration"
                )
            found.append((text, parsed[1]))
        return found


def ranges_of(node: Node) -> list[str]:
    """The ranges that a node has."""
    return (node.spec.pod_cidrs if node.spec else None) or []
