"""Nodes: ready or not, roles, version; wide: addresses and what runs there."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import Node, NodeSpec, NodeStatus, NodeSystemInfo

from ..duration import UNKNOWN
from ..printer import AGE, NAME, NONE, Cells, Printer, age, name, text, wide

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE: Final = "kubernetes.io/role"


def _cells(node: Node, now: float) -> Cells:
    status = node.status or NodeStatus()
    info = status.node_info or NodeSystemInfo()
    kernel = info.kernel_version or UNKNOWN
    return [
        name(node),
        _status(node.spec or NodeSpec(), status),
        ",".join(sorted(_roles(node))) or NONE,
        age(node, now),
        info.kubelet_version or "",
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.os_image or UNKNOWN,
        f"{kernel} ({info.architecture})" if info.architecture else kernel,
        info.container_runtime_version or UNKNOWN,
    ]


def _status(spec: NodeSpec, status: NodeStatus) -> str:
    word = "Unknown"
    for condition in status.conditions or ():
        if condition.type == "Ready":
            word = "Ready" if condition.status == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if spec.unschedulable else word


def _roles(node: Node) -> set[str]:
    """Roles are labels, in a newer form (the role is in the key) and an older one (it is the value)."""
    labels = (node.metadata and node.metadata.labels) or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE, ""))
    return roles - {""}


def _address(status: NodeStatus, type: str) -> str:
    return next((each.address or "" for each in status.addresses or () if each.type == type), NONE)


NODE: Final = Printer(
    (
        NAME,
        text("Status", "Whether pods can run there"),
        text("Roles", "What the node is for"),
        AGE,
        text("Version", "Version of the kubelet"),
        wide("Internal-IP", "Address inside the cluster"),
        wide("External-IP", "Address from outside"),
        wide("OS-Image", "Operating system"),
        wide("Kernel-Version", "Version of the kernel"),
        wide("Container-Runtime", "What runs the containers"),
    ),
    _cells,
)
