"""The network of nodes that have none of their own: all of them, and all pods, have this machine's address."""

from __future__ import annotations

from dataclasses import dataclass

from pybernetes.cluster import components
from pybernetes.cluster.node.network import Network


@dataclass(frozen=True, slots=True)
class SharedNetwork(Network):
    """As `Network`, for plain processes. The API server is on the loopback device, as it is without nodes."""

    host: str = ""

    @property
    def pods(self) -> str:
        return components.POD_RANGE  # nodes are given ranges, and use none

    @property
    def gateway(self) -> str:
        return components.BIND_ADDRESS

    def address(self, node: int) -> str:
        return self.host
