"""Shared by both plugins: the variables that a policy's expressions see."""

from __future__ import annotations

from typing import Any

from pybernetes.api.admissionregistration.expressions import Composition
from pybernetes.api.errors import NotFound
from pybernetes.api.resources import Resource

from ...registry.registry import Registry
from .. import documents
from ..expressions import Activation, namespace_document
from ..matching import namespaces_of
from ..plugin import Attributes
from .variables import Variables


class Scene:
    """The objects of a request in one version, ready for expressions."""

    def __init__(self, registry: Registry, attributes: Attributes, target: Resource, bindings: dict[str, Any]) -> None:
        self.target = target
        self._activation = Activation(registry, attributes, bindings, target)

    @classmethod
    async def make(cls, registry: Registry, attributes: Attributes, target: Resource, namespace: Any) -> Scene:
        """Look at the request as `target` shows it."""
        bindings = {
            "object": await documents.document(registry, attributes, attributes.new, target),
            "oldObject": await documents.document(registry, attributes, attributes.old, target),
            "namespaceObject": namespace,
        }
        return cls(registry, attributes, target, bindings)

    def activation(
        self, composition: Composition, params: Any, *, authorizer: bool = True
    ) -> tuple[Activation, Variables]:
        """The variables for one evaluation of a policy; expressions for messages have no authorizer."""
        made = self._activation.child({"params": params})
        if not authorizer:
            del made.bindings["authorizer"], made.bindings["authorizer.requestResource"]
        variables = Variables(composition, made.bindings)
        made.bindings["variables"] = variables
        return made, variables


async def namespace_of(registry: Registry, attributes: Attributes) -> Any:
    """The variable `namespaceObject`: None for cluster-scoped objects. Raises NotFound."""
    if not attributes.namespace or attributes.kind == ("v1", "Namespace"):
        return None
    found = await namespaces_of(registry).find("", attributes.namespace)
    if found is None:
        raise NotFound("", "namespaces", attributes.namespace)
    return namespace_document(found)
