"""Nothing is created in a namespace that does not exist or is going away; the built-in namespaces stay."""

from __future__ import annotations

from pybernetes.api.errors import Forbidden, NotFound

from .plugin import CREATE, DELETE, UPDATE, Attributes, Plugin

IMMORTAL = ("default", "kube-system", "kube-public")


class NamespaceLifecycle(Plugin):
    """Upstream's NamespaceLifecycle."""

    name = "NamespaceLifecycle"
    operations = (CREATE, UPDATE, DELETE)

    async def admit(self, attributes: Attributes) -> None:
        resource = attributes.resource
        if resource.plural == "namespaces" and not resource.group:
            if attributes.operation == DELETE and attributes.name in IMMORTAL:
                raise Forbidden("", "namespaces", attributes.name, "this namespace may not be deleted")
            return
        if not attributes.namespace or attributes.operation != CREATE:
            return
        if resource.plural == "localsubjectaccessreviews":  # a question about a namespace, not a thing in it
            return
        namespace = attributes.namespace
        namespaces = self.registry.store("", "v1", "namespaces")
        item = namespaces.peek("", namespace)
        if item is None:
            item = await namespaces.find("", namespace)
        if item is None:
            raise NotFound("", "namespaces", namespace)
        if namespaces.attributes(item).fields.get("status.phase") == "Terminating":
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
