"""The part of a node that is not in columns: the object itself and the pods on it."""

from __future__ import annotations

from pybernetes.api.core.v1 import Node

from ..framework.podinfo import PodInfo

Port = tuple[str, str, int]
"""Address, protocol, port; the address `0.0.0.0` stands for all."""


class NodeInfo:
    """A node, or (with `node` None) a name that pods are bound to although there is no such node (yet, or any more)."""

    __slots__ = ("claims", "images", "name", "node", "pods", "pods_with_affinity", "ports", "row")

    def __init__(self, name: str, row: int) -> None:
        self.name = name
        self.row = row
        self.node: Node | None = None
        self.pods: dict[str, PodInfo] = {}
        """By uid, in the order of their coming; assumed ones too."""
        self.pods_with_affinity: dict[str, PodInfo] = {}
        """Those of them that say something about pods beside them."""
        self.ports: dict[Port, int] = {}
        """Host ports in use, and by how many pods."""
        self.claims: dict[str, int] = {}
        """`namespace/name` of PersistentVolumeClaims in use, and by how many pods."""
        self.images: set[str] = set()
        """Names of images on the node; `snapshot.image_sizes` has their sizes."""

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels."""
        node = self.node
        return (node.metadata.labels if node and node.metadata else None) or {}

    def __repr__(self) -> str:
        return f"NodeInfo({self.name}, row {self.row}, {len(self.pods)} pods)"


def host_ports(info: PodInfo) -> list[Port]:
    """The ports of the node that a pod wants, those of sidecars too."""
    found: list[Port] = []
    spec = info.spec
    for container in spec.containers or ():
        for port in container.ports or ():
            if port.host_port:
                found.append((port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port))
    for container in spec.init_containers or ():
        if container.restart_policy == "Always":
            for port in container.ports or ():
                if port.host_port:
                    found.append((port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port))
    return found


def claims(info: PodInfo) -> list[str]:
    """`namespace/name` of the PersistentVolumeClaims that a pod uses, those made for its ephemeral volumes too."""
    found: list[str] = []
    for volume in info.spec.volumes or ():
        if volume.persistent_volume_claim:
            found.append(f"{info.namespace}/{volume.persistent_volume_claim.claim_name}")
        elif volume.ephemeral:
            found.append(f"{info.namespace}/{info.name}-{volume.name}")
    return found
