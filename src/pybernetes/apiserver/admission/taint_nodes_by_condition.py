"""Taints new nodes as not ready: no pod is scheduled there before the node has reported that it is."""

from __future__ import annotations

from pybernetes.api.core.v1 import Node, NodeSpec, Taint

from .default_toleration_seconds import NOT_READY
from .plugin import CREATE, Attributes, Plugin


class TaintNodesByCondition(Plugin):
    """Upstream's TaintNodesByCondition."""

    name = "TaintNodesByCondition"
    operations = (CREATE,)
    resources = ("nodes",)

    def admit(self, attributes: Attributes) -> None:
        node: Node = attributes.new
        spec = node.spec = node.spec or NodeSpec()
        present = spec.taints or []
        if not any(each.key == NOT_READY and each.effect == "NoSchedule" for each in present):
            spec.taints = [*present, Taint(key=NOT_READY, effect="NoSchedule")]
