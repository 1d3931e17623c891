"""The Node object of this machine: what it has, how it is, where it is. Pure."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pybernetes.api.core.podresources import Quantities
from pybernetes.api.core.resourcenames import is_extended
from pybernetes.api.core.v1 import (
    ContainerImage,
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeFeatures,
    NodeRuntimeHandler,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
    Taint,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.version import GIT_VERSION

from .allocatable import Machine

ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
ATTACH_DETACH: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
MAX_NAMES: Final = 5
"""Names of an image in the status; upstream's."""

_PRESSURES: Final = {
    "MemoryPressure": (
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory"),
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"),
    ),
    "DiskPressure": (
        ("KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"),
    ),
    "PIDPressure": (
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"),
    ),
}
READY: Final = "Ready"
DECLARED_FEATURES: Final = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)
"""The declared features of this kubelet, which not every kubelet of the cluster must have: the scheduler uses them."""


@dataclass(slots=True)
class NodeFindings:
    """All that the status of a node says."""

    name: str
    machine: Machine
    capacity: Quantities
    allocatable: Quantities
    addresses: Sequence[str]
    hostname: str
    port: int
    runtime_version: str = ""
    """`containerd://1.6.20`"""
    images: Sequence[ContainerImage] = ()
    handlers: Sequence[NodeRuntimeHandler] = ()
    supplemental_groups_policy: bool = False
    pressures: Mapping[str, bool] = field(default_factory=dict)
    problems: Sequence[str] = ()
    """Why the node is not ready."""
    volumes_in_use: Sequence[str] = ()
    external_addresses: Sequence[str] = ()
    """Where it can be reached from outside of the nodes' network, if elsewhere."""


def architecture() -> str:
    """The machine's architecture by Go's name."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def new_node(
    name: str,
    hostname: str,
    labels: Mapping[str, str],
    taints: Sequence[Taint],
    *,
    provider_id: str = "",
    unschedulable: bool = False,
) -> Node:
    """The Node to register with, without a status."""
    arch = architecture()
    return Node(
        metadata=ObjectMeta(
            name=name,
            labels={
                "beta.kubernetes.io/arch": arch,
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": arch,
                "kubernetes.io/hostname": hostname,
                "kubernetes.io/os": "linux",
                **labels,
            },
            annotations={ATTACH_DETACH: "true"},
        ),
        spec=NodeSpec(
            taints=list(taints) or None, provider_id=provider_id or None, unschedulable=unschedulable or None
        ),
    )


def node_status(findings: NodeFindings, old: NodeStatus, now: str) -> tuple[NodeStatus, list[str]]:
    """The status, and the reasons of events about what has turned since the old one."""
    turned: list[str] = []
    conditions = [each for each in old.conditions or () if each.type not in _PRESSURES and each.type != READY]
    for type, words in _PRESSURES.items():
        bad = findings.pressures.get(type, False)
        reason, message, event = words[0 if bad else 1]
        condition = NodeCondition(type=type, status="True" if bad else "False", reason=reason, message=message)
        conditions.append(_stamped(condition, old, now, event, turned))
    ready = NodeCondition(type=READY, status="True", reason="KubeletReady", message="kubelet is posting ready status")
    if findings.problems:
        message = findings.problems[0] if len(findings.problems) == 1 else f"[{', '.join(findings.problems)}]"
        ready = NodeCondition(type=READY, status="False", reason="KubeletNotReady", message=message)
    # The last one: old control planes look there.
    event = "NodeReady" if ready.status == "True" else "NodeNotReady"
    conditions.append(_stamped(ready, old, now, event, turned))
    machine = findings.machine
    foreign = _foreign_resources(findings, old)
    status = NodeStatus(
        capacity={**foreign, **{name: str(value) for name, value in findings.capacity.items()}},
        allocatable={**foreign, **{name: str(value) for name, value in findings.allocatable.items()}},
        conditions=conditions,
        addresses=[
            *(NodeAddress(type="InternalIP", address=each) for each in findings.addresses),
            *(NodeAddress(type="ExternalIP", address=each) for each in findings.external_addresses),
            NodeAddress(type="Hostname", address=findings.hostname),
        ],
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=findings.port)),
        node_info=NodeSystemInfo(
            machine_id=machine.machine_id,
            system_uuid=machine.system_uuid,
            boot_id=machine.boot_id,
            kernel_version=platform.release(),
            os_image=os_image(),
            container_runtime_version=findings.runtime_version,
            kubelet_version=GIT_VERSION,
            kube_proxy_version="",
            operating_system="linux",
            architecture=architecture(),
        ),
        images=list(findings.images) or None,
        runtime_handlers=list(findings.handlers) or None,
        features=NodeFeatures(supplemental_groups_policy=findings.supplemental_groups_policy),
        volumes_in_use=list(findings.volumes_in_use) or None,
        volumes_attached=old.volumes_attached,
        declared_features=list(DECLARED_FEATURES),
    )
    return status, turned


def _foreign_resources(findings: NodeFindings, old: NodeStatus) -> dict[str, str]:
    """Extended resources that an administrator added to the capacity: all of each is allocatable."""
    added = (old.capacity or {}).items()
    return {name: str(amount) for name, amount in added if name not in findings.capacity and is_extended(name)}


def same_but_for_heartbeats(left: NodeStatus, right: NodeStatus) -> bool:
    """Whether two statuses say the same."""
    return _without_heartbeats(left) == _without_heartbeats(right)


def same_conditions(left: NodeStatus, right: NodeStatus) -> bool:
    """Whether two statuses have the same conditions, but for heartbeats."""
    return _conditions(left) == _conditions(right)


def os_image(path: Path = Path("/etc/os-release")) -> str:
    """The operating system's name from /etc/os-release (`PRETTY_NAME`)."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return "Linux"
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    return values.get("PRETTY_NAME", "Linux").strip('"')


def status_images(images: Sequence[tuple[Sequence[str], Sequence[str], int]], limit: int) -> list[ContainerImage]:
    """Images for the status (tags, digests, bytes each), the largest first; -1: all."""
    ordered = sorted(images, key=lambda each: -each[2])
    return [
        ContainerImage(names=[*digests, *tags][:MAX_NAMES] or None, size_bytes=size)  # as the server answers it
        for tags, digests, size in (ordered if limit < 0 else ordered[:limit])
    ]


def _stamped(condition: NodeCondition, old: NodeStatus, now: str, event: str, turned: list[str]) -> NodeCondition:
    before = next((each for each in old.conditions or () if each.type == condition.type), None)
    condition.last_heartbeat_time = now
    if before is not None and before.status == condition.status:
        condition.last_transition_time = before.last_transition_time
    else:
        condition.last_transition_time = now
        turned.append(event)
    return condition


def _conditions(status: NodeStatus) -> list[tuple[str | None, ...]]:
    """The conditions ordered by type: the server keeps them in the order of arrival, from several writers."""
    found = [(each.type, each.status, each.reason, each.message) for each in status.conditions or ()]
    return sorted(found, key=lambda each: each[0] or "")


def _without_heartbeats(status: NodeStatus) -> list[object]:
    rest = [
        getattr(status, name)
        for name in ("capacity", "allocatable", "addresses", "daemon_endpoints", "images", "volumes_in_use")
    ]
    info = status.node_info
    told = info and (info.boot_id, info.kernel_version, info.container_runtime_version, info.kubelet_version)
    return [_conditions(status), rest, told, status.runtime_handlers, status.declared_features]
