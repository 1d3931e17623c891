"""Cluster events that may make an unschedulable pod schedulable.

A plugin says by `events_to_register` which events may undo its refusal; the queue wakes a pod only for events that one
of the plugins which refused it has named, and only if that plugin's hint, when it gave one, agrees.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, NamedTuple

from pybernetes.api.core.v1 import Pod


class Action:
    """Bits of what happened; the values are upstream's, because matching compares them by size."""

    ADD: Final = 1 << 0
    DELETE: Final = 1 << 1
    UPDATE_NODE_ALLOCATABLE: Final = 1 << 2
    UPDATE_NODE_LABEL: Final = 1 << 3
    UPDATE_NODE_TAINT: Final = 1 << 4
    """Taints, or `spec.unschedulable`."""
    UPDATE_NODE_CONDITION: Final = 1 << 5
    UPDATE_NODE_ANNOTATION: Final = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE: Final = 1 << 7
    UPDATE_POD_LABEL: Final = 1 << 8
    UPDATE_POD_SCALE_DOWN: Final = 1 << 9
    UPDATE_POD_TOLERATION: Final = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED: Final = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM: Final = 1 << 12
    UPDATE: Final = (1 << 13) - (1 << 2)
    ALL: Final = (1 << 13) - 1


class Resource:
    """The resource an event is about. `ASSIGNED_POD` and `UNSCHEDULABLE_POD` occur only in events, never in
    registrations."""

    WILDCARD: Final = "*"
    POD: Final = "Pod"
    ASSIGNED_POD: Final = "AssignedPod"
    UNSCHEDULABLE_POD: Final = "UnschedulablePod"
    NODE: Final = "Node"
    PERSISTENT_VOLUME: Final = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM: Final = "PersistentVolumeClaim"
    CSI_NODE: Final = "CSINode"
    CSI_DRIVER: Final = "CSIDriver"
    CSI_STORAGE_CAPACITY: Final = "CSIStorageCapacity"
    STORAGE_CLASS: Final = "StorageClass"
    VOLUME_ATTACHMENT: Final = "VolumeAttachment"
    RESOURCE_CLAIM: Final = "ResourceClaim"
    RESOURCE_SLICE: Final = "ResourceSlice"
    DEVICE_CLASS: Final = "DeviceClass"


class ClusterEvent(NamedTuple):
    """Something happened to objects of this resource; also what a plugin wants to hear of."""

    resource: str
    action: int
    custom: str = ""

    @property
    def label(self) -> str:
        """The name in metrics and logs."""
        if self.custom:
            return self.custom
        resource = Resource.POD if self.resource in _PODS else self.resource
        named = _NAMES.get(self.action) or "|".join(name for bit, name in _NAMES.items() if self.action & bit)
        return f"{resource}{named}"

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for anything at all."""
        return self.resource == Resource.WILDCARD and self.action == Action.ALL


_PODS = (Resource.ASSIGNED_POD, Resource.UNSCHEDULABLE_POD)
_NAMES = {
    Action.ALL: "All",
    Action.UPDATE: "Update",
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "AllocatableUpdate",
    Action.UPDATE_NODE_LABEL: "LabelUpdate",
    Action.UPDATE_NODE_TAINT: "TaintUpdate",
    Action.UPDATE_NODE_CONDITION: "ConditionUpdate",
    Action.UPDATE_NODE_ANNOTATION: "AnnotationUpdate",
    Action.UPDATE_NODE_DECLARED_FEATURE: "DeclaredFeatureUpdate",
    Action.UPDATE_POD_LABEL: "LabelUpdate",
    Action.UPDATE_POD_SCALE_DOWN: "ScaleDown",
    Action.UPDATE_POD_TOLERATION: "TolerationChange",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "SchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "GeneratedResourceClaimUpdate",
}

WILDCARD_EVENT = ClusterEvent(Resource.WILDCARD, Action.ALL)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.WILDCARD, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(Resource.WILDCARD, Action.ALL, "ForceActivate")
ASSIGNED_POD_ADD = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)


class Hint(Enum):
    """Whether an event may make a pod fit."""

    SKIP = 0
    QUEUE = 1


HintFunction = Callable[[Pod, Any, Any], Hint]
"""`hint(pod, old, new)`: old is None when the object was added, new is None when it was deleted."""


class EventWithHint(NamedTuple):
    """An event that a plugin wants to hear of; without a hint every such event wakes the pod."""

    event: ClusterEvent
    hint: HintFunction | None = None


def matches(wanted: ClusterEvent, incoming: ClusterEvent) -> bool:
    """Whether what happened is what was wanted, or something more specific."""
    if wanted.is_wildcard:
        return True
    if (
        wanted.resource != Resource.WILDCARD
        and wanted.resource != incoming.resource
        and not (wanted.resource == Resource.POD and incoming.resource in _PODS)
    ):
        return False
    return bool(wanted.action & incoming.action) and incoming.action <= wanted.action
