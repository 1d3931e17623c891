"""A running pod is only changed in ways that its node says it knows of (`status.declaredFeatures`)."""

from __future__ import annotations

from collections.abc import Iterator

from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Node, PodSpec
from pybernetes.api.equality import semantically_equal
from pybernetes.api.gocompat.quote import quote

from ..registry.lister import lister
from .plugin import UPDATE, Attributes, Plugin, forbidden


class NodeDeclaredFeatureValidator(Plugin):
    """Upstream's NodeDeclaredFeatureValidator."""

    name = "NodeDeclaredFeatureValidator"
    operations = (UPDATE,)
    resources = ("pods", "pods/resize")

    def validate(self, attributes: Attributes) -> None:
        new, old = attributes.new, attributes.old
        if new.metadata.generation == old.metadata.generation or not new.spec.node_name:
            return
        needed = list(_needed(new.spec, old.spec))
        if not needed:
            return
        name = new.spec.node_name
        node: Node | None = lister(self.registry, "", "v1", "nodes").get("", name)
        if node is None:
            raise forbidden(attributes, f"node {quote(name)} not found")
        declared = (node.status.declared_features if node.status else None) or ()
        lacking = [each for each in needed if each not in declared]
        if lacking:
            raise forbidden(
                attributes,
                f"pod update requires features {', '.join(lacking)} which are not available on node {quote(name)}",
            )


def _needed(new: PodSpec, old: PodSpec) -> Iterator[str]:
    if not semantically_equal(new.resources, old.resources):
        yield "InPlacePodLevelResourcesVerticalScaling"
    pairs = zip(new.init_containers or (), old.init_containers or (), strict=False)
    if any(not is_sidecar(before) and after.resources != before.resources for after, before in pairs):
        yield "InPlacePodVerticalScalingInitContainers"
