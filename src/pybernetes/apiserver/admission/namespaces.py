"""For plugins to which a pod's namespace has something to say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pybernetes.api.core.v1 import Namespace
from pybernetes.api.errors import NotFound

from ..registry.lister import lister
from .plugin import Attributes, Plugin


class NamespacedPlugin(Plugin):
    """A plugin that judges with the request's namespace in its hands."""

    def with_namespace(
        self, attributes: Attributes, then: Callable[[Attributes, Namespace], None]
    ) -> Awaitable[None] | None:
        """Go on with the namespace, at once if this server knows it. Raises NotFound."""
        namespace = lister(self.registry, "", "v1", "namespaces").get("", attributes.namespace)
        if namespace is None:
            return self._look_again(attributes, then)
        then(attributes, namespace)
        return None

    async def _look_again(self, attributes: Attributes, then: Callable[[Attributes, Namespace], None]) -> None:
        """Another server may have made the namespace a moment ago."""
        namespace = await lister(self.registry, "", "v1", "namespaces").find("", attributes.namespace)
        if namespace is None:
            raise NotFound("", "namespaces", attributes.namespace)
        then(attributes, namespace)
