"""Nothing is created in a namespace that does not exist or is going away; the built-in namespaces stay."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import cached_property

from pybernetes.api.errors import Forbidden, NotFound
from pybernetes.api.resources import Resource

from ..registry.resource_store import ResourceStore
from .plugin import CREATE, DELETE, Attributes, Plugin

IMMORTAL = ("default", "kube-system", "kube-public")


class NamespaceLifecycle(Plugin):
    """Upstream's NamespaceLifecycle."""

    name = "NamespaceLifecycle"
    operations = (CREATE, DELETE)

    @cached_property
    def _namespaces(self) -> ResourceStore:
        return self.registry.store("", "v1", "namespaces")

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        if resource.fullname == "namespaces":
            return operation == DELETE
        # A LocalSubjectAccessReview is a question about a namespace, not a thing in it.
        return operation == CREATE and resource.namespaced and resource.plural != "localsubjectaccessreviews"

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        if attributes.operation == DELETE:
            if attributes.name in IMMORTAL:
                raise Forbidden("", "namespaces", attributes.name, "this namespace may not be deleted")
            return None
        item = self._namespaces.peek("", attributes.namespace)
        if item is None:
            return self._look_again(attributes)
        if self._namespaces.attributes(item).fields.get("status.phase") == "Terminating":
            raise _terminating(attributes)
        return None

    async def _look_again(self, attributes: Attributes) -> None:
        """Another server may have made the namespace a moment ago."""
        item = await self._namespaces.find("", attributes.namespace)
        if item is None:
            raise NotFound("", "namespaces", attributes.namespace)
        if self._namespaces.attributes(item).fields.get("status.phase") == "Terminating":
            raise _terminating(attributes)


def _terminating(attributes: Attributes) -> Forbidden:
    resource = attributes.resource
    error = Forbidden(
        resource.group,
        resource.plural,
        attributes.name,
        f"unable to create new content in namespace {attributes.namespace} because it is being terminated",
    )
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {attributes.namespace} is being terminated",
        "field": "metadata.namespace",
    }
    error.details = {**(error.details or {}), "causes": [cause]}
    return error
