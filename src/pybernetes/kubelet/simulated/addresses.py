"""Addresses: where simulated nodes are, and which of its range each pod of a node has. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

NETWORK: Final = ipaddress.ip_network("198.18.0.0/15")
"""Where nodes are: addresses for tests of networks (RFC 2544), which lead nowhere."""


def node_address(number: int) -> str:
    """The address of the node with this number (from 0)."""
    return str(NETWORK[number + 1])


class Addresses:
    """Addresses of a node's pods: the lowest free one of its range, as long as the pod lives."""

    def __init__(self) -> None:
        self._used: dict[str, dict[str, str]] = {}

    def take(self, node: str, ranges: Sequence[str], uid: str) -> list[str]:
        """One address of each range; none while the node has no range."""
        found = []
        for each in ranges:
            used = self._used.setdefault(f"{node} {each}", {})
            hosts = ipaddress.ip_network(each).hosts()
            next(hosts, None)  # the gateway's
            taken = set(used.values())
            free = next((text for host in hosts if (text := str(host)) not in taken), None)
            if free is not None:
                used[uid] = free
                found.append(free)
        return found

    def give_back(self, node: str, ranges: Sequence[str], uid: str) -> None:
        """The pod is gone."""
        for each in ranges:
            self._used.get(f"{node} {each}", {}).pop(uid, None)

    def keep(self, node: str, ranges: Sequence[str], uid: str, addresses: Sequence[str]) -> None:
        """The pod has these already."""
        for each in ranges:
            for address in addresses:
                if ipaddress.ip_address(address) in ipaddress.ip_network(each):
                    self._used.setdefault(f"{node} {each}", {})[uid] = address
