"""Maps a node's conditions to taints, and its labels to their deprecated forms. No IO."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import Node, Taint

from ..common.meta import labels_of
from ..common.nodes import NO_EXECUTE, NO_SCHEDULE, same_taint, taints_of

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

_BY_CONDITION: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OURS: Final = frozenset((*_BY_CONDITION.values(), UNSCHEDULABLE))

_OLDER_LABELS: Final = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}


def no_schedule_changes(node: Node, time: str) -> tuple[list[Taint], list[Taint]]:
    """The NoSchedule taints to put on and to take off, so that they say what conditions and spec say."""
    keys = [
        _BY_CONDITION[told]
        for each in (node.status.conditions if node.status else None) or ()
        if (told := (each.type or "", each.status or "")) in _BY_CONDITION
    ]
    if node.spec and node.spec.unschedulable:
        keys.append(UNSCHEDULABLE)
    present = [each for each in taints_of(node) if each.effect == NO_SCHEDULE and each.key in _OURS]
    wanted = [Taint(key=key, effect=NO_SCHEDULE, time_added=time) for key in dict.fromkeys(keys)]
    add = [each for each in wanted if not any(same_taint(each, other) for other in present)]
    remove = [each for each in present if each.key not in keys]
    return add, remove


def no_execute_taints(ready: str) -> tuple[Taint, Taint] | None:
    """The taint that the status of the Ready condition calls for, and the one that excludes it; None if ready."""
    not_ready, unreachable = Taint(key=NOT_READY, effect=NO_EXECUTE), Taint(key=UNREACHABLE, effect=NO_EXECUTE)
    if ready == "False":
        return not_ready, unreachable
    if ready == "Unknown":
        return unreachable, not_ready
    return None


def label_changes(node: Node) -> dict[str, str]:
    """Older names of labels that are absent or say something else than the newer ones."""
    labels = labels_of(node)
    return {
        older: labels[newer]
        for newer, older in _OLDER_LABELS.items()
        if newer in labels and labels.get(older) != labels[newer]
    }
