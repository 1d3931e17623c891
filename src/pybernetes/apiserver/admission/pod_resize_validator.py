"""A running pod does not ask for more than its node has."""

from __future__ import annotations

from typing import Any

from pybernetes.api.core.podrequests import pod_requests
from pybernetes.api.core.podresources import quantity
from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.errors import Forbidden
from pybernetes.api.gocompat.quote import quote

from ..registry.lister import lister
from .plugin import UPDATE, Attributes, Plugin, forbidden


class PodResizeValidator(Plugin):
    """Upstream's PodResizeValidator."""

    name = "PodResizeValidator"
    operations = (UPDATE,)
    resources = ("pods/resize",)

    def validate(self, attributes: Attributes) -> None:
        pod: Pod = attributes.new
        name = pod.spec.node_name if pod.spec is not None else None
        if not name or attributes.old.metadata.generation == attributes.new.metadata.generation:
            return
        node: Node | None = lister(self.registry, "", "v1", "nodes").get("", name)
        if node is None:
            raise forbidden(attributes, f"node {quote(name)} not found")
        labels = (node.metadata.labels if node.metadata else None) or {}
        system = labels.get("kubernetes.io/os", "linux")
        if system != "linux":
            why = f"pod resize is only supported on linux nodes, node {quote(name)} is {quote(system)}"
            raise _with_cause(attributes, why, "UnsupportedPlatform")
        lacking = _lacking(pod, (node.status.allocatable if node.status else None) or {})
        if lacking:
            why = f"node didn't have enough allocatable resources: {'; '.join(lacking)}"
            raise _with_cause(attributes, why, "NodeCapacity")


def _lacking(pod: Pod, allocatable: dict[str, Any]) -> list[str]:
    wanted = pod_requests(pod, use_status=False)
    result = []
    for name, milli in (("cpu", True), ("memory", False)):
        has, wants = quantity(allocatable.get(name, "0")), wanted.get(name, quantity("0"))
        if wants > has:
            shown = [each.milli_value() if milli else each.value() for each in (wants, has)]
            result.append(f"{name}, requested: {shown[0]}, allocatable: {shown[1]}")
    return result


def _with_cause(attributes: Attributes, why: str, reason: str) -> Forbidden:
    error = forbidden(attributes, why)
    error.details = {**(error.details or {}), "causes": [{"reason": reason}]}
    return error
