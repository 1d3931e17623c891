"""Adding an owner reference needs permission to delete the object, because the owner's deletion will delete it.

And who lets an object hold up the deletion of its owner must be allowed to hold it up: to set the owner's finalizers.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from pybernetes.api import scheme
from pybernetes.api.equality import semantically_equal
from pybernetes.api.meta.v1 import OwnerReference
from pybernetes.api.resources import Resource

from ..authz.union import allows, decide
from ..requestinfo import RequestInfo
from .plugin import CREATE, UPDATE, Attributes, Plugin, forbidden


class OwnerReferencesPermissionEnforcement(Plugin):
    """Upstream's OwnerReferencesPermissionEnforcement."""

    name = "OwnerReferencesPermissionEnforcement"
    operations = (CREATE, UPDATE)

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        # Old kubelets spoil the owners in a pod's status; they are not taken from there anyway.
        return operation in self.operations and (resource.fullname, subresource) != ("pods", "status")

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        new, old = _owners(attributes.new), _owners(attributes.old)
        return None if semantically_equal(new or None, old or None) else self._check(attributes, new, old)

    async def _check(self, attributes: Attributes, new: list[OwnerReference], old: list[OwnerReference]) -> None:
        authorizers, user = self.registry.authorizers, attributes.user
        resource = attributes.requested
        if attributes.operation != CREATE:
            question = _question("delete", resource, attributes.subresource, attributes.namespace, attributes.name)
            decision, reason, error = await decide(authorizers, user, question)
            if decision.value != "allow":
                why = f"cannot set an ownerRef on a resource you can't delete: {reason}, {error or '<nil>'}"
                raise forbidden(attributes, why)
        before = {each.uid: bool(each.block_owner_deletion) for each in old}
        blocking = [each for each in new if each.block_owner_deletion and not before.get(each.uid)]
        if not blocking:
            return
        anything = RequestInfo("", "update", {}, True, "*", "*", "*", "finalizers", "", "*")
        if await allows(authorizers, user, anything):
            return
        for owner in blocking:
            kind = self._resource(owner, attributes)
            namespace = attributes.namespace if kind.namespaced else ""
            question = _question("update", kind, "finalizers", namespace, owner.name or "")
            decision, reason, error = await decide(authorizers, user, question)
            if decision.value != "allow":
                raise forbidden(
                    attributes,
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers "
                    f"on: {reason}, {error or '<nil>'}",
                )

    def _resource(self, owner: OwnerReference, attributes: Attributes) -> Resource:
        group, version = scheme.split_api_version(owner.api_version or "")
        custom = (each for each in self.registry.custom_resources() if (each.group, each.version) == (group, version))
        found = scheme.resource_for_kind(group, version, owner.kind or "")
        found = found or next((each for each in custom if each.kind == owner.kind), None)
        if found is None:
            raise forbidden(
                attributes,
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion "
                f'{owner.api_version} Kind {owner.kind}: no matches for kind "{owner.kind}" in version '
                f'"{owner.api_version}"',
            )
        return found


def _owners(obj: Any) -> list[OwnerReference]:
    meta = getattr(obj, "metadata", None)
    return list((meta.owner_references if meta is not None else None) or ())


def _question(verb: str, resource: Resource, subresource: str, namespace: str, name: str) -> RequestInfo:
    return RequestInfo(
        "", verb, {}, True, resource.group, resource.version, resource.plural, subresource, namespace, name
    )
