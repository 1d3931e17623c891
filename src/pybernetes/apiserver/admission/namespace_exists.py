"""Nothing happens in a namespace that does not exist, deletions included."""

from __future__ import annotations

from collections.abc import Awaitable

from pybernetes.api.errors import NotFound
from pybernetes.api.resources import Resource

from .plugin import CREATE, DELETE, UPDATE, Attributes, Plugin


class NamespaceExists(Plugin):
    """Upstream's NamespaceExists."""

    name = "NamespaceExists"
    operations = (CREATE, UPDATE, DELETE)

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return operation in self.operations and resource.namespaced

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        namespaces = self.registry.store("", "v1", "namespaces")
        return None if namespaces.peek("", attributes.namespace) else self._look_again(attributes)

    async def _look_again(self, attributes: Attributes) -> None:
        """Another server may have made the namespace a moment ago."""
        if await self.registry.store("", "v1", "namespaces").find("", attributes.namespace) is None:
            raise NotFound("", "namespaces", attributes.namespace)
