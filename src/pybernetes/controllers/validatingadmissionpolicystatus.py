"""Says in the status of a ValidatingAdmissionPolicy what its expressions get wrong about the kinds they are about.

Woken by: policies. Writes: their status, by apply. Kinds are built in, or defined by a CustomResourceDefinition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybernetes.api import scheme
from pybernetes.api.admissionregistration.v1 import (
    TypeChecking,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyStatus,
)
from pybernetes.api.apiextensions.v1 import CustomResourceDefinition
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.keys import Key

from .base import Controller
from .common.meta import meta

if TYPE_CHECKING:
    from pybernetes.api.cel.types import Type

MANAGER = "validatingadmissionpolicy-status"


class ValidatingAdmissionPolicyStatusController(Controller[ValidatingAdmissionPolicy]):
    """Checks types."""

    name = "validatingadmissionpolicy-status-controller"
    kind = ValidatingAdmissionPolicy

    def setup(self) -> None:
        """Know the kinds that users have defined."""
        self.workers = self.options.concurrent_validating_admission_policy_status_syncs
        self.definitions = self.informer(CustomResourceDefinition)

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return MANAGER

    async def reconcile(self, key: Key) -> float | None:
        """Check a policy that has changed since it was last checked."""
        policy = self.own.get(key)
        if policy is None:
            return None
        generation = meta(policy).generation or 0
        if generation <= ((policy.status and policy.status.observed_generation) or 0):
            return None
        from pybernetes.api.admissionregistration.typechecking import check_types

        warnings = check_types(policy, self._kinds(policy), self._params(policy))
        checked = TypeChecking(expression_warnings=warnings or None)
        status = ValidatingAdmissionPolicyStatus(observed_generation=generation, type_checking=checked)
        desired = ValidatingAdmissionPolicy(metadata=ObjectMeta(name=key.name), status=status)
        await self.client.apply(desired, field_manager=MANAGER, force=True, subresource="status")
        return None

    def _kinds(self, policy: ValidatingAdmissionPolicy) -> dict[tuple[str, str, str], Type | None]:
        from pybernetes.api.admissionregistration.typechecking import MAX_TYPES, resources_named

        found: dict[tuple[str, str, str], Type | None] = {}
        for group, version, plural in resources_named(policy):
            resource = scheme.resource(group, version, plural)
            if resource is not None:
                found[group, version, resource.kind] = _built_in(resource.type)
            else:
                for definition in self.definitions.items():
                    spec = definition.spec
                    if spec is not None and spec.group == group and spec.names and spec.names.plural == plural:
                        type = _defined(definition, version)
                        if type is not None:
                            found[group, version, spec.names.kind or ""] = type
            if len(found) >= MAX_TYPES:
                break
        return found

    def _params(self, policy: ValidatingAdmissionPolicy) -> Type | None:
        kind = policy.spec.param_kind if policy.spec is not None else None
        if kind is None:
            return None
        group, version = scheme.split_api_version(kind.api_version or "")
        resource = scheme.resource_for_kind(group, version, kind.kind or "")
        if resource is not None:
            return _built_in(resource.type)
        for definition in self.definitions.items():
            spec = definition.spec
            if spec is not None and spec.group == group and spec.names and spec.names.kind == kind.kind:
                return _defined(definition, version)
        return None


def _built_in(cls: type[msgspec.Struct]) -> Type:
    from pybernetes.api.cel.kinds import type_of_kind

    return type_of_kind(cls)


def _defined(definition: CustomResourceDefinition, version: str) -> Type | None:
    from pybernetes.api.cel.schemas import type_from_schema

    for each in (definition.spec and definition.spec.versions) or ():
        if each.name == version and each.schema is not None:
            schema = each.schema.open_apiv_3_schema
            return (
                None
                if schema is None
                else type_from_schema(msgspec.json.decode(msgspec.json.encode(schema)), root=True)
            )
    return None
