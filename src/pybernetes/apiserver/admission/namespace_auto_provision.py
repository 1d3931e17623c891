"""A namespace that does not exist is made when something is created in it."""

from __future__ import annotations

from collections.abc import Awaitable

from pybernetes.api.core.v1 import Namespace
from pybernetes.api.errors import APIError
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resources import Resource

from .plugin import CREATE, Attributes, Plugin, forbidden


class NamespaceAutoProvision(Plugin):
    """Upstream's NamespaceAutoProvision."""

    name = "NamespaceAutoProvision"
    operations = (CREATE,)

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return operation == CREATE and resource.namespaced

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        namespaces = self.registry.store("", "v1", "namespaces")
        if attributes.dry_run or namespaces.peek("", attributes.namespace):
            return None
        return self._provide(attributes)

    async def _provide(self, attributes: Attributes) -> None:
        from ..bootstrap.objects import ensure

        try:
            namespace = Namespace(metadata=ObjectMeta(name=attributes.namespace))
            await ensure(self.registry, "", "v1", "namespaces", namespace)
        except APIError as error:
            raise forbidden(attributes, error) from None
