"""Initializers: puts the names of initializers into new objects, and says who may take them out again.

Names come from the InitializerConfigurations whose rules match, in the order of the configurations' names. A user with
the permission to `initialize` a resource may bypass that by sending a list of their own, and may change objects that
are not initialized yet: anything in them, but of the list only its first name can be taken away, or a result be set,
which ends the object. For others such objects are not to be changed. All may delete them who may delete others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pybernetes.api.admissionregistration.validation.initializers import validate_initializer_name
from pybernetes.api.errors import Invalid
from pybernetes.api.field import FieldError, Path, invalid
from pybernetes.api.resources import Resource

from ..authz.authorizer import Decision
from ..authz.union import decide
from ..registry.lister import lister
from ..requestinfo import RequestInfo
from .plugin import CREATE, UPDATE, Attributes, Plugin, forbidden

if TYPE_CHECKING:
    from pybernetes.api.meta.v1.initializers import Initializers as Waiting

_PATH: Final = Path("metadata", "initializers")
_MIRROR: Final = "kubernetes.io/config.mirror"
_CONFIGURATIONS: Final = "initializerconfigurations"


class Initializers(Plugin):
    """Objects wait for those whom the configurations name."""

    name = "Initializers"
    operations = (CREATE, UPDATE)
    resources = ("*",)

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return resource.plural != _CONFIGURATIONS and super().wants(operation, resource, subresource)

    async def admit(self, attributes: Attributes) -> None:
        """Names in, or out."""
        if getattr(attributes.new, "metadata", None) is None:
            return
        if attributes.operation == CREATE:
            await self._create(attributes)
        else:
            await self._update(attributes)

    async def _create(self, attributes: Attributes) -> None:
        meta = attributes.new.metadata
        given: Waiting | None = meta.initializers
        if given is not None:
            await self._require(attributes, "create with initializers denied")
            if not given.pending and given.result is None:
                meta.initializers = None
            else:
                _check(attributes, _problems(given))
            return
        if attributes.resource.fullname == "pods" and _MIRROR in (meta.annotations or {}):
            return  # it runs already
        names = matching(self._configurations(), attributes.requested)
        if names:
            from pybernetes.api.meta.v1.initializers import Initializer
            from pybernetes.api.meta.v1.initializers import Initializers as Pending

            meta.initializers = Pending(pending=[Initializer(name=each) for each in names])

    async def _update(self, attributes: Attributes) -> None:
        meta = attributes.new.metadata
        new: Waiting | None = meta.initializers
        if new is not None and not new.pending and new.result is None:
            new = meta.initializers = None
        old: Waiting | None = attributes.old.metadata.initializers
        if new is None and old is None:
            return
        _check(attributes, transition(new, old))
        await self._require(attributes, "update to uninitialized resource denied")

    def _configurations(self) -> list[Any]:
        return lister(self.registry, "admissionregistration.k8s.io", "v1alpha1", _CONFIGURATIONS).list()

    async def _require(self, attributes: Attributes, message: str) -> None:
        resource = attributes.requested
        question = RequestInfo(
            "",
            "initialize",
            {},
            True,
            resource.group,
            resource.version,
            resource.plural,
            "",
            attributes.namespace if resource.namespaced else "",
            attributes.name,
        )
        decision, reason, _ = await decide(self.registry.authorizers, attributes.user, question)
        if decision is not Decision.ALLOW:
            raise forbidden(attributes, f"{message}: {reason}" if reason else message)


def matching(configurations: Iterable[Any], resource: Resource) -> list[str]:
    """The names of those who want to see new objects of a resource, each once."""
    found: dict[str, None] = {}
    for configuration in configurations:
        for each in configuration.initializers or ():
            for rule in each.rules or ():
                if (
                    _has(rule.api_groups, resource.group)
                    and _has(rule.api_versions, resource.version)
                    and _has(rule.resources, resource.plural)
                ):
                    found[each.name or ""] = None
    return list(found)


def _has(values: list[str] | None, wanted: str) -> bool:
    return "*" in (values or ()) or wanted in (values or ())


def transition(new: Waiting | None, old: Waiting | None) -> list[FieldError]:
    """Validation errors of a change of the list."""
    if old is None:
        return [invalid(_PATH, None, "field is immutable once initialization has completed")]
    before = [each.name for each in old.pending or ()]
    after = [each.name for each in (new.pending if new is not None else None) or ()]
    errors: list[FieldError] = []
    if after not in (before, before[1:]):
        errors.append(invalid(_PATH.child("pending"), after, "only the first pending initializer may be removed"))
    if old.result is not None and (new is None or new.result != old.result):
        errors.append(invalid(_PATH.child("result"), None, "field is immutable"))
    return errors + (_result_problems(new) if new is not None else [])


def _problems(given: Waiting) -> list[FieldError]:
    errors = _result_problems(given)
    for index, each in enumerate(given.pending or ()):
        errors += validate_initializer_name(each.name or "", _PATH.child("pending").index(index).child("name"))
    return errors


def _result_problems(given: Waiting) -> list[FieldError]:
    if given.result is None or given.result.status == "Failure":
        return []
    return [invalid(_PATH.child("result", "status"), given.result.status or "", "must be 'Failure'")]


def _check(attributes: Attributes, errors: list[FieldError]) -> None:
    if errors:
        resource = attributes.requested
        raise Invalid(resource.group, resource.kind, attributes.name, errors)
