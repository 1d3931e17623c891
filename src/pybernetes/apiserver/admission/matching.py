"""Which requests a webhook or policy is about: rules, selectors, and other versions of what was asked for.

Rules depend only on a request's form (operation, resource, subresource), so their callers compute the matching rules
once for each form; selectors and names are left for the request itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pybernetes.api import labels
from pybernetes.api.errors import NotFound
from pybernetes.api.resources import Resource

from ..registry.lister import Lister, lister
from ..registry.registry import Registry
from .plugin import CREATE, UPDATE, Attributes

EXEMPT_GROUP = "admissionregistration.k8s.io"
"""The kinds that configure admission are not subject to it."""

Form = tuple[str, Resource, str]
"""Operation, the resource as the client named it, subresource."""


def form_of(attributes: Attributes) -> Form:
    """The form of a request."""
    return attributes.operation, attributes.requested, attributes.subresource


def rule_matches(rule: Any, form: Form) -> bool:
    """Whether a rule is about requests of this form."""
    operation, resource, subresource = form
    if rule.scope and rule.scope != "*" and (rule.scope == "Namespaced") != resource.namespaced:
        return False
    return (
        _listed(rule.operations, operation)
        and _listed(rule.api_groups, resource.group)
        and _listed(rule.api_versions, resource.version)
        and any(_names(name, resource.plural, subresource) for name in rule.resources or ())
    )


def _listed(items: Sequence[str] | None, wanted: str) -> bool:
    return any(item in ("*", wanted) for item in items or ())


def _names(name: str, plural: str, subresource: str) -> bool:
    resource, _, sub = name.partition("/")
    return resource in ("*", plural) and sub in ("*", subresource)


def equivalents(registry: Registry, resource: Resource) -> list[Resource]:
    """The same objects in other versions and groups."""
    return [
        each
        for each in registry.resources()
        if each is not resource
        and each.stored
        and each.storage_prefix == resource.storage_prefix
        and each.kind == resource.kind
    ]


class Matches:
    """The result of matching rules with a form: the version to convert to, and the names if not all match."""

    __slots__ = ("names", "target")

    def __init__(self, target: Resource, names: frozenset[str]) -> None:
        self.target = target
        self.names = names


def rules_for(rules: Sequence[Any], policy: str | None, form: Form, registry: Registry) -> list[Matches]:
    """The rules that are about a form, earlier ones first; those for other versions come after, if the policy is so."""
    operation, resource, subresource = form
    found = [_match(rule, resource) for rule in rules if rule_matches(rule, form)]
    if policy != "Equivalent" or any(not each.names for each in found):
        return found
    others = equivalents(registry, resource)
    for rule in rules:
        found += [_match(rule, other) for other in others if rule_matches(rule, (operation, other, subresource))]
    return found


def _match(rule: Any, target: Resource) -> Matches:
    return Matches(target, frozenset(getattr(rule, "resource_names", None) or ()))


def first(matches: Sequence[Matches], name: str) -> Matches | None:
    """The first that is about an object of this name."""
    return next((each for each in matches if not each.names or name in each.names), None)


class Selectors:
    """The namespaceSelector and objectSelector of a webhook, policy or binding."""

    __slots__ = ("namespace", "object")

    def __init__(self, namespace: Any, object: Any) -> None:
        self.namespace = _selector(namespace)
        self.object = _selector(object)

    async def match(self, attributes: Attributes, namespaces: Lister[Any]) -> bool:
        """Whether both select the request. Raises NotFound for a namespace that is not there."""
        if self.object is not None and not (
            _selects(self.object, attributes.new) or _selects(self.object, attributes.old)
        ):
            return False
        if self.namespace is None:
            return True
        is_namespace = attributes.requested.fullname == "namespaces"
        if not attributes.namespace and not is_namespace:
            return True
        if is_namespace and not attributes.subresource and attributes.operation in (CREATE, UPDATE):
            return self.namespace.matches(_labels(attributes.new))
        found = await namespaces.find("", attributes.namespace)
        if found is None:
            raise NotFound("", "namespaces", attributes.namespace)
        return self.namespace.matches(found.metadata.labels or {})


def _selector(selector: Any) -> labels.Selector | None:
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return None
    return labels.from_label_selector(selector)


def _labels(obj: Any) -> dict[str, str]:
    metadata = getattr(obj, "metadata", None)
    return (metadata.labels if metadata is not None else None) or {}


def _selects(selector: labels.Selector, obj: Any) -> bool:
    return obj is not None and getattr(obj, "metadata", None) is not None and selector.matches(_labels(obj))


def namespaces_of(registry: Registry) -> Lister[Any]:
    """The server's view of its namespaces."""
    return lister(registry, "", "v1", "namespaces")
