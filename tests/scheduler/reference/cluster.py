"""The world a decision is made in: lists of API objects, and queries on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pybernetes.api.apps.v1 import ReplicaSet, StatefulSet
from pybernetes.api.core.v1 import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ReplicationController,
    Service,
)
from pybernetes.api.storage.v1 import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment

UNSCHEDULABLE = "Unschedulable"
UNRESOLVABLE = "UnschedulableAndUnresolvable"


class Refusal(NamedTuple):
    """Why a node cannot take the pod, and whether evicting others from it could help."""

    code: str
    reasons: tuple[str, ...]


@dataclass
class Cluster:
    """Everything the scheduler may look at. `pods` are those with a node."""

    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    namespaces: list[Namespace] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    replica_sets: list[ReplicaSet] = field(default_factory=list)
    stateful_sets: list[StatefulSet] = field(default_factory=list)
    replication_controllers: list[ReplicationController] = field(default_factory=list)
    claims: list[PersistentVolumeClaim] = field(default_factory=list)
    volumes: list[PersistentVolume] = field(default_factory=list)
    classes: list[StorageClass] = field(default_factory=list)
    csi_nodes: list[CSINode] = field(default_factory=list)
    attachments: list[VolumeAttachment] = field(default_factory=list)
    drivers: list[CSIDriver] = field(default_factory=list)
    capacities: list[CSIStorageCapacity] = field(default_factory=list)

    def on(self, node: Node) -> list[Pod]:
        """The pods of a node."""
        return [pod for pod in self.pods if pod.spec.node_name == node.metadata.name]

    def node_of(self, pod: Pod) -> Node:
        """The node of a pod that has one."""
        return next(node for node in self.nodes if node.metadata.name == pod.spec.node_name)

    def labels_of_namespace(self, name: str) -> dict[str, str]:
        """None is as good as no labels, as upstream has it."""
        return next((each.metadata.labels or {} for each in self.namespaces if each.metadata.name == name), {})

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """A claim by name."""
        found = [c for c in self.claims if c.metadata.namespace == namespace and c.metadata.name == name]
        return found[0] if found else None

    def volume(self, name: str) -> PersistentVolume | None:
        """A volume by name."""
        return next((each for each in self.volumes if each.metadata.name == name), None)

    def storage_class(self, name: str) -> StorageClass | None:
        """A class by name."""
        return next((each for each in self.classes if each.metadata.name == name), None)


def labels_of(obj: Node | Pod | PersistentVolume) -> dict[str, str]:
    """Its labels, never None."""
    return obj.metadata.labels or {}
