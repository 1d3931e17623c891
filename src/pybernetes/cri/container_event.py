"""One thing that happened to a container: the value that all sources of events speak in."""

from __future__ import annotations

import enum
from dataclasses import dataclass

POD_UID = "io.kubernetes.pod.uid"
"""The label by which the kubelet marks what belongs to a pod."""


class EventType(enum.StrEnum):
    """The kind of event; the container may be a sandbox."""

    RESYNC = "resync"
    """Anything may have happened, to any container."""
    STOPPED = "stopped"
    DELETED = "deleted"
    OOM = "oom"
    """The kernel killed a process of it for want of memory; it may go on without that one."""


@dataclass(frozen=True, slots=True)
class ContainerEvent:
    """One thing that happened, to a container or a sandbox."""

    type: EventType
    container_id: str = ""
    pod_uid: str = ""
    """Of the pod that it belongs to, if the runtime still knows."""
