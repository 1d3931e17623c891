"""A pod carries the zone and region of its node as labels, so that what runs in it can know them."""

from __future__ import annotations

from pybernetes.api.core.v1 import Binding, Pod
from pybernetes.api.meta.v1 import ObjectMeta

from ..registry.lister import lister
from .plugin import CREATE, Attributes, Plugin

_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels(Plugin):
    """Upstream's PodTopologyLabels: a binding's labels become the pod's."""

    name = "PodTopologyLabels"
    operations = (CREATE,)
    resources = ("pods", "pods/binding")

    def admit(self, attributes: Attributes) -> None:
        obj: Pod | Binding = attributes.new
        if isinstance(obj, Binding):
            target = obj.target
            name = target.name if target is not None and target.kind == "Node" else None
        else:
            name = obj.spec.node_name if obj.spec is not None else None
        node = lister(self.registry, "", "v1", "nodes").get("", name) if name else None
        if node is None:
            return
        labels = node.metadata.labels or {}
        copied = {key: labels[key] for key in _LABELS if key in labels}
        if copied:
            meta = obj.metadata = obj.metadata or ObjectMeta()
            meta.labels = {**(meta.labels or {}), **copied}
