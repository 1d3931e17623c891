"""Which volumes are to be attached to a node, and detached from it. Pure.

A volume is called here as nodes call it, `kubernetes.io/csi/DRIVER^HANDLE`. A node's `volumesAttached` is a promise to
its kubelet: what is listed may be mounted. So a volume leaves the list before it is detached, and is detached only when
the node's `volumesInUse` does not have it; unless the node is out of service, or silent for longer than it should be.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pybernetes.api.core.v1 import ContainerStatus, Node, PersistentVolume, Pod, Volume
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.storage.v1 import VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec

from ..common.meta import annotations_of, is_deleting, name_of
from ..common.nodes import node_condition, taints_of
from ..common.pods import is_terminal

MANAGED: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
"""On a node: its kubelet leaves attaching to us."""
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
MAX_WAIT_FOR_UNMOUNT: Final = 360.0  # seconds, upstream's

_CSI: Final = "kubernetes.io/csi/"


@dataclass(frozen=True)
class Attachable:
    """A volume that has to be attached before it can be mounted."""

    name: str
    title: str
    """Its name in events."""
    exclusive: bool = False
    """Whether it can be on one node only."""
    persistent_volume: str = ""

    @property
    def csi(self) -> tuple[str, str] | None:
        """Driver and handle, if a driver attaches it; all others are attached by the node itself."""
        return driver_and_handle(self.name)


def driver_and_handle(name: str) -> tuple[str, str] | None:
    """The driver and handle in the name of a CSI volume."""
    if not name.startswith(_CSI):
        return None
    driver, separator, handle = name.removeprefix(_CSI).partition("^")
    return (driver, handle) if separator else None


def attachable(
    volume: Volume, persistent: PersistentVolume | None, needs_attaching: Callable[[str], bool]
) -> Attachable | None:
    """The attachable volume behind a pod's volume, `persistent` being the one behind its claim; None if it needs no
    attaching."""
    source = persistent.spec if persistent is not None else volume
    if source is None:
        return None
    if persistent is not None and persistent.spec is not None and persistent.spec.csi is not None:
        driver, handle = persistent.spec.csi.driver or "", persistent.spec.csi.volume_handle or ""
        if not needs_attaching(driver):
            return None
        name = f"{_CSI}{driver}^{handle}"
    elif source.iscsi is not None:
        target = source.iscsi
        name = f"kubernetes.io/iscsi/{target.target_portal}:{target.iqn}:{target.lun or 0}"
    elif source.fc is not None:
        if source.fc.target_wwns and source.fc.lun is not None:
            name = f"kubernetes.io/fc/[{' '.join(source.fc.target_wwns)}]:{source.fc.lun}"
        else:
            name = f"kubernetes.io/fc/[{' '.join(source.fc.wwids or ())}]"
    else:
        return None
    if persistent is None:
        return Attachable(name, volume.name or "")
    modes = (persistent.spec.access_modes if persistent.spec else None) or ()
    exclusive = bool(modes) and not {"ReadWriteMany", "ReadOnlyMany"} & set(modes)
    return Attachable(name, name_of(persistent), exclusive, name_of(persistent))


def attachment_name(name: str, node: str) -> str:
    """The name of the VolumeAttachment of a CSI volume on a node: kubelets compute it too."""
    driver, handle = driver_and_handle(name) or ("", "")
    return "csi-" + hashlib.sha256(f"{handle}{driver}{node}".encode()).hexdigest()


def is_ours(name: str) -> bool:
    """Whether an attachment is called as those that are made here."""
    return re.fullmatch("csi-[0-9a-f]{64}", name) is not None


def attachment(wanted: Attachable, node: str) -> VolumeAttachment:
    """The order to attach a CSI volume to a node."""
    driver, _ = wanted.csi or ("", "")
    source = VolumeAttachmentSource(persistent_volume_name=wanted.persistent_volume)
    return VolumeAttachment(
        metadata=ObjectMeta(name=attachment_name(wanted.name, node)),
        spec=VolumeAttachmentSpec(attacher=driver, source=source, node_name=node),
    )


def uses_volumes(pod: Pod) -> bool:
    """Whether a pod may have its volumes mounted, now or later."""
    if is_terminal(pod):
        return False
    status = pod.status
    if not is_deleting(pod) or status is None:
        return not is_deleting(pod)
    groups = (status.init_container_statuses, status.container_statuses, status.ephemeral_container_statuses)
    return any(_may_run(each) for group in groups for each in group or ())


def _may_run(status: ContainerStatus) -> bool:
    state = status.state
    return state is None or (state.terminated is None and state.waiting is None)


@dataclass(frozen=True)
class NodeState:
    """The state of a node; a node that is gone is not healthy and uses nothing."""

    exists: bool = False
    managed: bool = False
    healthy: bool = False
    out_of_service: bool = False
    in_use: frozenset[str] = frozenset()
    reported: tuple[str, ...] = ()


def node_state(node: Node | None) -> NodeState:
    """The state of a node for attaching."""
    if node is None:
        return NodeState()
    ready = node_condition(node, "Ready")
    status = node.status
    return NodeState(
        exists=True,
        managed=MANAGED in annotations_of(node),
        healthy=ready is not None and ready.status == "True",
        out_of_service=any(taint.key == OUT_OF_SERVICE for taint in taints_of(node)),
        in_use=frozenset((status.volumes_in_use if status else None) or ()),
        reported=tuple(each.name or "" for each in (status.volumes_attached if status else None) or ()),
    )


@dataclass(frozen=True)
class Detach:
    """A volume to be detached from a node; `forced` says why the node's unmount is not waited for."""

    name: str
    attachment: VolumeAttachment | None
    forced: str = ""


@dataclass
class Plan:
    """The actions for a node."""

    report: list[str] = field(default_factory=list)
    """The volumes the kubelet may mount."""
    create: list[Attachable] = field(default_factory=list)
    blocked: list[Attachable] = field(default_factory=list)
    """Volumes that another node has."""
    detach: list[Detach] = field(default_factory=list)
    unwanted: dict[str, float] = field(default_factory=dict)
    """Since when which volumes are not wanted any more."""
    again: float | None = None
    """In how many seconds waiting ends."""


def plan(
    node: NodeState,
    wanted: Iterable[Attachable],
    held: Mapping[str, VolumeAttachment | None],
    is_elsewhere: Callable[[Attachable], bool],
    unwanted: Mapping[str, float],
    now: float,
    *,
    force: bool = True,
) -> Plan:
    """Plan the attachments of a node that needs these volumes and has those.

    `held` has the volumes that are attached, or on their way, by name, with their VolumeAttachments; a CSI volume
    without one is not attached whatever the node's status says. `unwanted` is from the last plan; `force` allows
    to detach from silent nodes.
    """
    result = Plan()
    needed = {each.name: each for each in wanted}
    for name, present in held.items():
        if name in needed:
            continue
        result.unwanted[name] = since = unwanted.get(name, now)
        expired = force and now - since > MAX_WAIT_FOR_UNMOUNT
        if name in node.in_use and not node.out_of_service and not (expired and not node.healthy):
            if _is_attached(name, present):
                result.report.append(name)
            if force and not node.healthy and not expired:
                wait = since + MAX_WAIT_FOR_UNMOUNT - now + 0.001
                result.again = wait if result.again is None else min(result.again, wait)
            continue
        reason = "timeout" if expired else "out-of-service" if node.out_of_service else ""
        result.detach.append(Detach(name, present, reason))
    for each in needed.values():
        present = held.get(each.name)
        if present is not None or (each.csi is None and each.name in held):
            if _is_attached(each.name, present):
                result.report.append(each.name)
        elif each.exclusive and is_elsewhere(each):
            result.blocked.append(each)
        elif each.csi is None:
            result.report.append(each.name)
        else:
            result.create.append(each)
    result.report.sort()
    return result


def _is_attached(name: str, present: VolumeAttachment | None) -> bool:
    if driver_and_handle(name) is None:
        return True
    return present is not None and not is_deleting(present) and bool(present.status and present.status.attached)


def blocking_message(title: str, namespace: str, users: Iterable[Pod]) -> str:
    """Why a volume cannot be attached for a pod of a namespace: who else uses it, without names from elsewhere."""
    here: list[str] = []
    elsewhere = 0
    for pod in users:
        if pod.metadata is not None and pod.metadata.namespace == namespace:
            here.append(name_of(pod))
        else:
            elsewhere += 1
    if here:
        text = f"Volume is already used by pod(s) {', '.join(sorted(here))}"
        text += f" and {elsewhere} pod(s) in different namespaces" if elsewhere else ""
    elif elsewhere:
        text = f"Volume is already used by {elsewhere} pod(s) in different namespaces"
    else:
        text = (
            "Volume is already exclusively attached to one node, waiting on detach before it can be attached to "
            "another node"
        )
    return f'Waiting for detach for volume "{title}" {text}'
